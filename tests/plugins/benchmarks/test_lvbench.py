"""LVBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import DataError, PromptStyle, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.lvbench import LVBench

FIRST = {
    "uid": "812",
    "question": "What year appears?\n(A) 1636\n(B) 1366\n(C) 1363\n(D) 1633",
    "answer": "D",
    "question_type": ["key information retrieval", "reasoning"],
    "time_reference": "01:10-01:25",
}
SECOND = {**FIRST, "uid": "813", "answer": "A", "question_type": ["reasoning"]}
ROW = {"key": "Cm73ma6Ibcs", "type": "cartoon", "video_info": {"fps": 25}, "qa": [FIRST, SECOND]}
FILE = "video_info.meta.jsonl"


def test_real_records(records) -> None:
    items = records(LVBench())
    check_benchmark(LVBench(), items)
    assert (items[0].video, items[0].choices, items[0].gold) == (
        "videos/9tBsMSDoDqk.mp4",
        ("Spade 7", "Club 7", "Spade 9", "Club 9"),
        "B",
    )


def test_official_rows(release) -> None:
    items = release(LVBench(), {FILE: [ROW]})
    check_benchmark(LVBench(), items)
    first, second = items
    assert (first.uid, first.question, first.choices) == ("lvbench/812", "What year appears?", ("1636", "1366", "1363", "1633"))
    assert (first.gold, second.gold, first.video) == ("D", "A", "videos/Cm73ma6Ibcs.mp4")
    assert "01:10" not in str(LVBench().prompt(first, PromptStyle()))
    with pytest.raises(DataError, match="holds no options"):
        release(LVBench(), {FILE: [{**ROW, "qa": [{**FIRST, "question": "What?"}]}]})


def test_a_question_counts_in_each_of_its_abilities(release) -> None:
    items = release(LVBench(), {FILE: [ROW]})
    scored = [ScoredRow(item=item, answer="D", scores={"accuracy": score}) for item, score in zip(items, (1, 0), strict=True)]
    found = LVBench().aggregate(scored)
    assert found["ability=key information retrieval/accuracy"] == 100
    assert found["ability=reasoning/accuracy"] == 50
    assert found["type=cartoon/accuracy"] == 50
