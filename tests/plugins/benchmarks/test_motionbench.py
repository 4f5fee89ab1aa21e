"""MotionBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

from evr1_core.api import BenchmarkPaths, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.motionbench import MotionBench
from tests.plugins.benchmarks.conftest import write

ASKED = {"uid": "q1", "question": "Does the camera move?\nA. To the left.\nB. No.\nC. To the right.", "answer": "B"}
ROW = {
    "key": "x",
    "video_path": "self-collected/x.mp4",
    "question_type": "Camera Motion",
    "video_type": "talks",
    "video_info": {},
    "qa": [ASKED],
}
FILE = "MotionBench/video_info.meta.jsonl"


def test_real_records(records) -> None:
    items = records(MotionBench())
    check_benchmark(MotionBench(), items)
    assert items[0].groups == {"type": ("Camera Motion",), "origin": ("self-collected",)}
    assert items[2].groups["origin"] == ("public-dataset",)


def test_official_rows(release) -> None:
    items = release(MotionBench(), {FILE: [ROW]})
    check_benchmark(MotionBench(), items)
    (item,) = items
    assert (item.question, item.choices, item.gold) == ("Does the camera move?", ("To the left.", "No.", "To the right."), "B")
    assert item.groups == {"type": ("Camera Motion",), "origin": ("self-collected",)}


def test_what_cannot_be_asked_is_counted(tmp_path) -> None:
    single = {**ASKED, "uid": "q3", "question": "How?\nA. Fast.", "answer": "A"}
    write(tmp_path / "video_info.meta.jsonl", [{**ROW, "qa": [{**ASKED, "answer": "NA", "uid": "q2"}, single, ASKED]}])
    hidden, broken, item = MotionBench().load(BenchmarkPaths(folder=tmp_path))
    assert isinstance(hidden, Skipped)
    assert hidden.reason == "q2: its answer is not published"
    assert isinstance(broken, Skipped)
    assert broken.reason == "q3: it has a single choice"
    assert item.uid == "motionbench/q1"


def test_videos_lie_in_either_folder(tmp_path) -> None:
    (tmp_path / "MotionBench" / "public-dataset").mkdir(parents=True)
    (tmp_path / "MotionBench" / "public-dataset" / "y.mp4").touch()
    assert MotionBench().locate("y.mp4", BenchmarkPaths(folder=tmp_path)) == "MotionBench/public-dataset/y.mp4"
