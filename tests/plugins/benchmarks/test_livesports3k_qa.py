"""LiveSports-3K QA. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.livesports3k_qa import LiveSportsQA

ROW = {
    "video_id": "abc",
    "question_id": "e4_q1",
    "q_type": "Who",
    "OCR": 1,
    "question": "Who scores?",
    "options": ["A: The goalkeeper", "B: Number 7", "C: Nobody", "D: The referee"],
    "answer": "B",
    "begin": 3.25,
    "end": 17.5,
}
COLUMNS = {key: value for key, value in ROW.items() if key not in ("options", "begin", "end")}
COLUMNS |= {"option_A": "x", "option_B": "y", "option_C": "z", "option_D": "w", "video_start": 3.25, "video_end": 17.5}


def test_real_records(records) -> None:
    items = records(LiveSportsQA())
    check_benchmark(LiveSportsQA(), items)
    assert len(items) == 16
    assert items[0].choices == ("The target", "The small car", "The little dog", "The flag")
    assert (items[0].gold, items[0].video, items[0].clip) == ("C", "Bde6YJSgkNM_1.291_21.739.mp4", None)
    assert items[0].groups == {"q_type": ("What",), "ocr": ("non-OCR",)}


def test_official_rows(release) -> None:
    first, second = release(LiveSportsQA(), {"LiveSports-3K-QA.json": [ROW, ROW]})
    check_benchmark(LiveSportsQA(), [first, second])
    assert (first.uid, second.uid) == ("livesports3k_qa/0", "livesports3k_qa/1")  # one published id
    assert first.source_id == second.source_id == "abc_e4_q1"
    assert (first.labels, first.choices[1], first.gold) == (("A", "B", "C", "D"), "Number 7", "B")
    assert (first.video, first.clip) == ("videos/abc.mp4", (3.25, 17.5))
    assert first.groups == {"q_type": ("Who",), "ocr": ("OCR",)}


def test_the_older_revision_is_a_table(release) -> None:
    (item,) = release(LiveSportsQA(), {"LiveSports-3K-QA.csv": [COLUMNS]})
    assert (item.choices, item.clip, item.groups["ocr"]) == (("x", "y", "z", "w"), (3.25, 17.5), ("OCR",))


def test_accuracy_by_group(release) -> None:
    rows = [ROW, {**ROW, "q_type": "What", "OCR": 0}, {**ROW, "OCR": 0}]
    items = release(LiveSportsQA(), {"LiveSports-3K-QA.json": rows})
    scored = [ScoredRow(item=item, answer="B", scores={"accuracy": right}) for item, right in zip(items, (1, 0, 0), strict=True)]
    found = LiveSportsQA().aggregate(scored)
    assert found == {
        "accuracy": pytest.approx(100 / 3),
        "q_type=What/accuracy": 0.0,
        "q_type=Who/accuracy": 50.0,
        "ocr=OCR/accuracy": 100.0,
        "ocr=non-OCR/accuracy": 0.0,
    }
