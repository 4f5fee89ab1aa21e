"""MotionBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, ScoredRow, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.motionbench import MotionBench

NAME = "MotionBench/video_info.meta.jsonl"
QUESTION = {"uid": "u1", "question": "How does the camera move?\nA. Left\nB. Right, then\nup\nC. It stays", "answer": "B"}
ROW = {
    "key": "abc",
    "video_path": "self-collected/abc.mp4",
    "question_type": "Camera Motion",
    "video_type": "web",
    "video_info": {"fps": 30.0, "duration": 4.0},
    "qa": [QUESTION],
}


def test_real_records(records) -> None:
    items = records(MotionBench())
    check_benchmark(MotionBench(), items)
    assert (items[0].video, items[0].gold) == ("self-collected/qnmuytO5VXQzfN6P.mp4", "A")
    assert items[0].groups == {"question_type": ("Camera Motion",)}
    assert (items[2].labels, items[2].gold) == (("A", "B", "C"), "B")


def test_official_rows(release) -> None:
    two = {**ROW, "qa": [QUESTION, {**QUESTION, "answer": "C"}]}  # one uid, one question
    first, second = release(MotionBench(), {NAME: [two]})
    check_benchmark(MotionBench(), [first, second])
    assert (first.uid, second.uid, first.source_id) == ("motionbench/0-0", "motionbench/0-1", "u1")
    assert (first.question, first.choices) == ("How does the camera move?", ("Left", "Right, then up", "It stays"))
    assert (first.gold, second.gold, first.video) == ("B", "C", "self-collected/abc.mp4")


def test_hidden_and_single_choices_are_left_out(tmp_path) -> None:
    rows = [{**QUESTION, "answer": "NA"}, {**QUESTION, "uid": "u2", "question": "How?\nA. So", "answer": "A"}, QUESTION]
    (tmp_path / "video_info.meta.jsonl").write_text(json.dumps({**ROW, "qa": rows}))
    hidden, single, kept = MotionBench().load(BenchmarkPaths(folder=tmp_path))
    assert isinstance(hidden, Skipped)
    assert "hidden" in hidden.reason
    assert isinstance(single, Skipped)
    assert single.reason == "question u2 has a single choice"
    assert kept.uid == "motionbench/0-2"
    broken = {"problem": "How?", "problem_type": "multiple choice", "options": ["A. So"], "path": "x.mp4", "problem_id": 2047}
    (tmp_path / "motionbench.json").write_text(json.dumps([{**broken, "solution": "A", "original_question_type": "Action Order"}]))
    (left_out,) = MotionBench().load(BenchmarkPaths(folder=tmp_path, source="normalised"))
    assert left_out.reason == "question 2047 has a single choice"


@pytest.mark.parametrize("place", ["self-collected", "public-dataset", "MotionBench/self-collected", "MotionBench/public-dataset"])
def test_where_videos_lie(tmp_path, place) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "abc.mp4").touch()
    found = MotionBench().locate("abc.mp4", BenchmarkPaths(folder=tmp_path))
    assert found == f"{place}/abc.mp4"
    assert MotionBench().locate(found.removeprefix("MotionBench/"), BenchmarkPaths(folder=tmp_path)) == found


def test_accuracy_by_kind(release) -> None:
    items = release(MotionBench(), {NAME: [ROW, ROW, {**ROW, "question_type": "Action Order"}]})
    scored = [ScoredRow(item=item, answer="B", scores={"accuracy": right}) for item, right in zip(items, (1, 0, 1), strict=True)]
    found = MotionBench().aggregate(scored)
    assert found["accuracy"] == pytest.approx(200 / 3)
    assert (found["question_type=Camera Motion/accuracy"], found["question_type=Action Order/accuracy"]) == (50.0, 100.0)
