"""ODV-Bench. The official rows are made by hand in the documented shape, and so are the normalised ones: none are at hand."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.odvbench import OdvBench

ROW = {
    "video": "TR_Analysis/accident/2/0001.mp4",
    "question": "Will the car brake?",
    "candidates": ["Yes", "No"],
    "answer": "No",
    "start": 0,
    "end": 7.5,
    "fps": 30,
    "task": "multi-object interaction",
    "subtask": "Risk Prediction",
}
NORMALISED = {
    "data_type": "video",
    "problem_type": "multiple choice",
    "problem": "Will the car brake?",
    "options": ["A. Yes", "B. No"],
    "solution": "<answer>B</answer>",
    "path": "./12_0001_s0_e7.5.mp4",
    "problem_id": 12,
    "odv_task": "multi-object interaction",
    "odv_subtask": "Risk Prediction",
}


def test_official_rows(release) -> None:
    other = {**ROW, "video": "TR_Analysis/accident/3/0001.mp4", "candidates": ["a", "b", "c", "d"], "answer": "d"}
    first, second = release(OdvBench(), {"ODVbench.json": [ROW, {**other, "subsubtask": "brake"}]})
    check_benchmark(OdvBench(), [first, second])
    assert (first.choices, first.gold, first.clip, first.fps) == (("Yes", "No"), "B", (0.0, 7.5), 30.0)
    assert (second.gold, second.video) == ("D", "TR_Analysis/accident/3/0001.mp4")  # not its stem, which is the first's
    assert first.groups == {"task": ("multi-object interaction",), "subtask": ("Risk Prediction",)}
    assert second.groups["subsubtask"] == ("brake",)


def test_normalised_rows_show_nothing_behind_the_end(tmp_path) -> None:
    path = tmp_path / "odvbench.json"
    path.write_text(json.dumps([NORMALISED, {**NORMALISED, "path": "12_0001.mp4"}]), "utf-8")
    first, second = OdvBench().load(BenchmarkPaths(folder=tmp_path / "odvbench"))
    check_benchmark(OdvBench(), [first, second])
    assert (first.gold, first.video, first.clip) == ("B", "12_0001_s0_e7.5.mp4", (0.0, 7.5))
    assert second.clip is None
    assert first.groups["subtask"] == ("Risk Prediction",)


def test_an_empty_reply_is_wrong(release) -> None:
    items = release(OdvBench(), {"ODVbench.json": [ROW, ROW]})
    answers = [OdvBench().parse(item, reply, "lenient") for item, reply in zip(items, ("B", ""), strict=True)]
    scored = [
        ScoredRow(item=item, answer=answer, scores=OdvBench().score(item, answer, None))
        for item, answer in zip(items, answers, strict=True)
    ]
    assert answers == ["B", None]
    assert OdvBench().aggregate(scored)["subtask=Risk Prediction/accuracy"] == pytest.approx(50)


def test_an_answer_that_is_no_candidate(release) -> None:
    with pytest.raises(DataError, match=r"ODVbench\.json:1: the answer 'Perhaps' is none of the choices"):
        release(OdvBench(), {"ODVbench.json": [{**ROW, "answer": "Perhaps"}]})
