"""OVO-Bench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, PromptStyle, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.ovobench import CATEGORIES, OvoBench

MC = {
    "id": 794,
    "task": "STU",
    "video": "star/x.mp4",
    "realtime": 12.5,
    "question": "What now?",
    "options": ["a", "b"],
    "gt": 1,
}
REC = {
    "id": 1567,
    "task": "REC",
    "video": "perception/y.mp4",
    "activity": "close a door",
    "start_times": [1, 9],
    "end_times": [2, 11],
    "test_info": [{"realtime": 3, "count": 1}, {"realtime": 12, "count": 2}],
}
SSR = {
    "id": 1600,
    "task": "SSR",
    "video": "coin/z.mp4",
    "tutorial": "make tea",
    "all_steps": ["boil water", "pour"],
    "test_info": [{"realtime": 4, "step": "boil water", "type": 1}, {"realtime": 9.5, "step": "pour", "type": 0}],
}
CRR = {
    "id": 1700,
    "task": "CRR",
    "video": "ego/w.mp4",
    "question": "Who enters?",
    "answer": "A child",
    "ask_time": 2,
    "clue_time": 8,
    "test_info": [{"realtime": 5, "type": 0}],
}


def test_real_records(records) -> None:
    items = records(OvoBench())
    check_benchmark(OvoBench(), items)
    assert (items[0].gold, items[0].video, items[0].clip) == ("A", "794.mp4", None)
    assert items[0].groups == {"task": ("STU",), "category": ("realtime",)}
    assert (items[2].task, items[2].gold, items[2].video) == ("count", 0, "1567_0.mp4")


def test_official_rows(release) -> None:
    items = release(OvoBench(), {"ovo_bench_new.json": [MC, REC, SSR, CRR]})
    check_benchmark(OvoBench(), items)
    assert [(item.uid, item.gold, item.video, item.clip) for item in items] == [
        ("ovobench/794", "B", "chunked_videos/794.mp4", (0.0, 12.5)),
        ("ovobench/1567_0", 1, "chunked_videos/1567_0.mp4", (0.0, 3.0)),
        ("ovobench/1567_1", 2, "chunked_videos/1567_1.mp4", (0.0, 12.0)),
        ("ovobench/1600_0", True, "chunked_videos/1600_0.mp4", (0.0, 4.0)),
        ("ovobench/1600_1", False, "chunked_videos/1600_1.mp4", (0.0, 9.5)),
        ("ovobench/1700_0", False, "chunked_videos/1700_0.mp4", (0.0, 5.0)),
    ]
    texts = [OvoBench().prompt(item, PromptStyle()).parts[-1] for item in items]
    assert texts[1].startswith("How many times did they close a door?")
    assert 'right now, where the video ends: "boil water"?' in texts[3]
    assert 'show enough to answer this question: "Who enters?"?' in texts[5]
    assert "A child" not in texts[5]


def test_whole_videos_are_shown_up_to_the_moment(tmp_path, release) -> None:
    first, second, _ = release(OvoBench(videos="source"), {"data/ovo_bench_new.json": [MC, REC]})
    assert (first.video, first.clip) == ("src_videos/star/x.mp4", (0.0, 12.5))
    assert (second.video, second.clip) == ("src_videos/perception/y.mp4", (0.0, 3.0))


def test_a_missing_chunk_is_missing(tmp_path) -> None:
    paths = BenchmarkPaths(folder=tmp_path)
    for place in ("src_videos/star/x.mp4", "chunked_videos/794.mp4"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    assert OvoBench().locate("794.mp4", paths) == OvoBench().locate("chunked_videos/794.mp4", paths) == "chunked_videos/794.mp4"
    assert OvoBench().locate("chunked_videos/795.mp4", paths) is None
    assert OvoBench().locate("src_videos/star/x.mp4", paths) == "src_videos/star/x.mp4"


@pytest.mark.parametrize(
    ("number", "response", "right"),
    [
        (1, "a total of 1", 1),
        (2, "2 of 3 shown, so the count is 2", 1),
        (1, "once", 1),
        (3, "Yes, it did", 1),
        (4, "N", 1),
        (4, "I do not know", 0),
        (5, "I know it", 0),
        (0, "B: b", 1),
    ],
)
def test_replies(release, number, response, right) -> None:
    item = release(OvoBench(), {"ovo_bench_new.json": [MC, REC, SSR, CRR]})[number]
    assert OvoBench().score(item, OvoBench().parse(item, response, "lenient"), None) == {"accuracy": right}


def test_the_total_is_the_mean_of_three_means(release) -> None:
    items = release(OvoBench(), {"ovo_bench_new.json": [{**MC, "task": task} for task in ("EPM", "HLD", "OJR")] + [REC, CRR]})
    scored = [ScoredRow(item=i, answer="", scores={"accuracy": s}) for i, s in zip(items, (1, 0, 1, 1, 0, 0), strict=True)]
    found = OvoBench().aggregate([*scored, scored[0], scored[0]])  # EPM three times
    assert found["category=backward/macro"] == pytest.approx(50)
    assert found["category=backward/accuracy"] == pytest.approx(75)
    assert found["category=forward/macro"] == pytest.approx(25)  # REC 50, CRR 0
    assert found["macro"] == pytest.approx((50 + 100 + 25) / 3)
    assert found["accuracy"] == pytest.approx(100 * 5 / 8)


def test_the_published_example(release) -> None:
    items = release(OvoBench(), {"ovo_bench_new.json": [{**MC, "task": "EPM"}, MC, CRR]})
    scored = [ScoredRow(item=i, answer="", scores={"accuracy": s}) for i, s in zip(items, (0.6254, 0.6932, 0.5715), strict=True)]
    assert OvoBench().aggregate(scored)["macro"] == pytest.approx(63.00, abs=0.005)
    assert len(CATEGORIES) == 12


def test_normalised_yes_and_no(tmp_path) -> None:
    row = {"problem_type": "SSR", "problem": "pour", "problem_id": "ovo_1_0", "path": "1_0.mp4", "solution": "<answer>Yes</answer>"}
    row |= {"ovo_task": "SSR", "ovo_category": "forward", "ovo_id": 1, "ovo_test_idx": 0, "ovo_type": 1}
    (tmp_path / "ovobench.json").write_text(json.dumps([row]), "utf-8")
    (item,) = OvoBench().load(BenchmarkPaths(folder=tmp_path / "ovobench"))
    assert (item.gold, item.groups["category"]) == (True, ("forward",))


def test_rows_that_cannot_be_read(release) -> None:
    with pytest.raises(DataError, match=r"ovo_bench_new\.json:1: gt is 2, of 2 options counted from 0"):
        release(OvoBench(), {"ovo_bench_new.json": [{**MC, "gt": 2}]})
    with pytest.raises(DataError, match="unknown task 'XYZ'"):
        release(OvoBench(), {"ovo_bench_new.json": [{**MC, "task": "XYZ"}]})
