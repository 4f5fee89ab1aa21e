"""Video-MME. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import BenchmarkPaths, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.videomme import VideoMME

ROW = {
    "video_id": "017",
    "duration": "short",
    "domain": "Knowledge",
    "sub_category": "Astronomy",
    "url": "https://example.org/x",
    "videoID": "aB3-x_yZ012",
    "question_id": "017-2",
    "task_type": "Counting Problem",
    "question": "How many moons are drawn?",
    "options": ["A. One.", "B. Two.", "C. Two.", "D. Four."],
    "answer": "B",
}
NAME = "videomme/test-00000-of-00001.parquet"


def test_real_records(records) -> None:
    items = records(VideoMME())
    check_benchmark(VideoMME(), items)
    first = items[0]
    assert (first.uid, first.gold, first.video) == ("videomme/599-1", "B", "videos/0JjgoicpYkU.mp4")
    assert first.subtitle == "subtitle/0JjgoicpYkU.srt"
    assert first.groups["task"] == ("OCR Problems",)


def test_official_rows(release) -> None:
    first, second = release(VideoMME(), {NAME: [ROW, {**ROW, "question_id": "017-3"}]})
    check_benchmark(VideoMME(), [first, second])
    assert (first.uid, second.source_id) == ("videomme/017-2", "017-3")
    assert (first.choices, first.gold) == (("One.", "Two.", "Two.", "Four."), "B")
    assert (first.video, first.subtitle) == ("videos/aB3-x_yZ012.mp4", "subtitle/aB3-x_yZ012.srt")
    assert first.groups == {
        "duration": ("short",),
        "domain": ("Knowledge",),
        "sub_category": ("Astronomy",),
        "task": ("Counting Problem",),
    }


@pytest.mark.parametrize(
    ("response", "letter"),
    [("Based on the video, he leaves.", None), ("Two.", None), ("One", "A"), ("The best option is: (D)", "D")],
)
def test_what_a_reply_chooses(release, response, letter) -> None:
    (item,) = release(VideoMME(), {NAME: [ROW]})
    assert VideoMME().parse(item, response, "lenient") == letter


def test_where_videos_lie(tmp_path) -> None:
    paths = BenchmarkPaths(folder=tmp_path)
    assert VideoMME().locate("videos/x.mp4", paths) is None
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.mkv").touch()
    assert VideoMME().locate("videos/x.mp4", paths) == "data/x.mkv"


def test_accuracy_by_duration(release) -> None:
    rows = [{**ROW, "question_id": f"017-{n}", "duration": duration} for n, duration in enumerate(("short", "long", "long"))]
    scored = [
        ScoredRow(item=item, answer="B", scores={"accuracy": right})
        for item, right in zip(release(VideoMME(), {NAME: rows}), (1, 1, 0), strict=True)
    ]
    found = VideoMME().aggregate(scored)
    assert found["accuracy"] == pytest.approx(200 / 3)
    assert (found["duration=short/accuracy"], found["duration=long/accuracy"]) == (100.0, 50.0)
