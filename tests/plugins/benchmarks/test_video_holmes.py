"""Video-Holmes. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import DataError
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.video_holmes import VideoHolmes

ROW = {
    "video ID": "JNYV55-JWbc",
    "Question ID": 1550,
    "Question Type": "TA",
    "Question": "In which order?",
    "Options": {"A": "1, 2", "B": "2, 1", "C": "3", "D": "1, 2", "E": "4", "F": "5"},
    "Answer": "D",
    "Explanation": "He wakes up first.",
}
FILE = "test_Video-Holmes.json"


def test_real_records(records) -> None:
    items = records(VideoHolmes())
    check_benchmark(VideoHolmes(), items)
    assert (items[0].video, items[0].gold, len(items[0].choices)) == ("videos_cropped/JNYV55-JWbc.mp4", "D", 6)
    assert items[0].choices[0] == items[0].choices[3]


def test_official_rows(release) -> None:
    items = release(VideoHolmes(), {FILE: [ROW]})
    check_benchmark(VideoHolmes(), items)
    assert (items[0].source_id, items[0].groups, items[0].choices[1]) == ("1550", {"type": ("TA",)}, "2, 1")
    with pytest.raises(DataError, match="unknown question type 'XY'"):
        release(VideoHolmes(), {FILE: [{**ROW, "Question Type": "XY"}]})


def test_only_the_letter_of_the_gold_is_right_and_the_conclusion_counts(release) -> None:
    own = VideoHolmes()
    (item,) = release(own, {FILE: [ROW]})
    assert own.score(item, own.parse(item, "<answer>A</answer>", "strict"), None) == {"accuracy": 0.0}
    said = "A is possible. Therefore, the final answer is: D"
    assert own.parse(item, said, "lenient") == "D"
