"""MINERVA. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import DataError, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.minerva import Minerva

ROW = {
    "key": "-ab:3",
    "video_id": "-abcdefghij",
    "question": "How many wrestlers?",
    "answer": "Four.",
    **{f"answer_choice_{number}": f"{number + 1}." for number in range(5)},
    "answer_id": 3,
    "reasoning": "They are counted.",
    "question type": "Counting, Temporal Reasoning",
    "split": "Sports & Board Games",
    "category": "Wrestling",
}


def test_real_records(records) -> None:
    items = records(Minerva())
    check_benchmark(Minerva(), items)
    assert (items[1].video, items[1].choices, items[1].gold) == ("8FKq6r2rad8.mp4", ("5.", "4.", "2.", "3.", "1."), "C")


def test_official_rows(release) -> None:
    mirror = {**{key: value for key, value in ROW.items() if key != "question type"}, "question_type": "Counting", "key": "b"}
    items = release(Minerva(), {"minerva.json": [ROW, mirror]})
    check_benchmark(Minerva(), items)
    first, second = items
    assert (first.video, first.gold, first.choices) == ("-abcdefghij.mp4", "D", ("1.", "2.", "3.", "4.", "5."))
    assert first.groups == {"type": ("Counting", "Temporal Reasoning"), "domain": ("Sports & Board Games",)}
    assert second.groups["type"] == ("Counting",)
    found = Minerva().aggregate(
        [ScoredRow(item=first, answer="D", scores={"accuracy": 1}), ScoredRow(item=second, answer=None, scores={"accuracy": 0})]
    )
    assert found["type=Counting/accuracy"] == pytest.approx(50)
    assert found["type=Temporal Reasoning/accuracy"] == pytest.approx(100)
    with pytest.raises(DataError, match="answer_id must be 0 to 4; is 5"):
        release(Minerva(), {"minerva.json": [{**ROW, "answer_id": 5}]})


def test_the_normalised_file_in_the_folder_is_told_apart(release) -> None:
    row = {
        "problem_type": "multiple choice",
        "path": "x.mp4",
        "problem": "Which?",
        "problem_id": 3,
        "options": ["A. a", "B. b"],
        "solution": "<answer>B</answer>",
    }
    (item,) = release(Minerva(), {"minerva.json": [row]})
    assert (item.gold, item.video) == ("B", "x.mp4")
