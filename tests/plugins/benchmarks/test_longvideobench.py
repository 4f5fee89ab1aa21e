"""LongVideoBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import DataError
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.longvideobench import LongVideoBench

ROW = {
    "id": "86CxyhFV9MI_0",
    "video_id": "86CxyhFV9MI",
    "video_path": "86CxyhFV9MI.mp4",
    "subtitle_path": "86CxyhFV9MI_en.json",
    "question": "In the video, which subtitles appear at the same time as the man?",
    "question_wo_referring_query": "Which subtitles appear?",
    "candidates": ["promisc", "run", "ambitions", "the", "yes"],
    "correct_choice": 1,
    "position": [854, 1018],
    "topic_category": "NP-News-Programs",
    "question_category": "TOS",
    "level": "L2-Relation",
    "duration_group": 600,
    "duration": 190.16,
    "starting_timestamp_for_subtitles": 12.5,
}


def test_real_records(records) -> None:
    items = records(LongVideoBench())
    check_benchmark(LongVideoBench(), items)
    assert (items[0].video, len(items[0].choices), items[0].gold) == ("videos/MPQn_orwpfA.mp4", 5, "B")


def test_official_rows(release) -> None:
    table = {key: value for key, value in ROW.items() if key != "candidates"}
    table |= {"id": "b", "option0": "x", "option1": "y", "option2": "N/A", "option3": "N/A", "option4": "N/A"}
    items = release(LongVideoBench(), {"lvb_val.json": [ROW, table]})
    check_benchmark(LongVideoBench(), items)
    first, second = items
    assert (first.gold, first.choices[1], second.choices, second.gold) == ("B", "run", ("x", "y"), "B")
    assert (first.subtitle, first.subtitle_offset, first.duration) == ("subtitles/86CxyhFV9MI_en.json", 12.5, 190.16)
    assert first.groups == {
        "duration": ("600",),
        "category": ("TOS",),
        "topic": ("NP-News-Programs",),
        "level": ("L2-Relation",),
    }
    with pytest.raises(DataError, match="correct_choice must be 0 to 4; is 5"):
        release(LongVideoBench(), {"lvb_val.json": [{**ROW, "correct_choice": 5}]})
