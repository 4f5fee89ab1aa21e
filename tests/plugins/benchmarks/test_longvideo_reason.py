"""LongVideo-Reason-eval. The official rows are made by hand in the documented shape."""

from __future__ import annotations

from evr1_core.api import BenchmarkPaths, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.longvideo_reason import LongVideoReason
from tests.plugins.benchmarks.conftest import write

ROW = {
    "problem": "<video>Why does she leave?\nA. It rains.\nB. A call\nfrom home.\nC. She is late.\nD. No reason.",
    "answer": "<answer>B</answer>",
    "videos": "longvila_videos/x.webm",
    "problem_type": "plot",
    "problem_id": 17,
}


def test_real_records(records) -> None:
    items = records(LongVideoReason())
    check_benchmark(LongVideoReason(), items)
    assert (items[1].video, items[1].gold) == ("d4RaY6InfBY.mp4", "C")
    assert items[0].choices[:2] == ("", "REASONS:")  # as published


def test_official_rows(release) -> None:
    items = release(LongVideoReason(), {"test.jsonl": [ROW, {**ROW, "videos": ["longvila_videos/y.mp4"]}]})
    check_benchmark(LongVideoReason(), items)
    first, second = items
    assert (first.question, first.choices[1], first.gold) == ("Why does she leave?", "A call from home.", "B")
    assert (first.video, second.video, first.groups) == ("x.webm", "y.mp4", {"type": ("plot",)})


def test_broken_rows_are_counted_and_videos_found_in_any_subset(tmp_path) -> None:
    write(tmp_path / "test.json", [{**ROW, "problem": "<video>Why?"}, {**ROW, "answer": "<answer>E</answer>"}, ROW])
    found = list(LongVideoReason().load(BenchmarkPaths(folder=tmp_path)))
    assert [isinstance(each, Skipped) for each in found] == [True, True, False]
    assert "holds no options" in found[0].reason
    assert "none of its options" in found[1].reason
    folder = tmp_path / "longvideo_eval_subset3"
    folder.mkdir()
    (folder / "x.webm").touch()
    assert LongVideoReason().locate("x.webm", BenchmarkPaths(folder=tmp_path)) == "longvideo_eval_subset3/x.webm"
