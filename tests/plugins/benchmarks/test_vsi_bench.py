"""VSI-Bench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import BenchmarkPaths, DataError, ScoredRow, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.vsi_bench import VsiBench

SIZE = {
    "id": 12,
    "dataset": "scannet",
    "scene_name": "scene0001_00",
    "question_type": "object_abs_distance",
    "question": "How far is the door from the bed, in meters?",
    "options": None,
    "ground_truth": "2.4",
    "pruned": False,
}
SIDE = {
    **SIZE,
    "id": 13,
    "question_type": "object_rel_direction_hard",
    "question": "Where is the lamp?",
    "options": ["A. left", "B. back", "C. right"],
    "ground_truth": "C",
    "pruned": True,
}


def test_real_records(records) -> None:
    items = records(VsiBench())
    check_benchmark(VsiBench(), items)
    first, second = items[:2]
    assert (first.task, first.gold, first.video) == ("mc", "B", "scannetpp/5942004064.mp4")
    assert (second.task, second.gold, second.choices) == ("regression", 14.0, ())
    assert second.groups == {"task": ("object_counting",), "type": ("object_counting",)}


@pytest.mark.parametrize("name", ["test.jsonl", "test-00000-of-00001.parquet"])
def test_official_rows(release, name) -> None:
    size, side = release(VsiBench(), {name: [SIZE, SIDE]})
    check_benchmark(VsiBench(), [size, side])
    assert (size.task, size.gold, size.video, size.source_id) == ("regression", 2.4, "scannet/scene0001_00.mp4", "12")
    assert (side.task, side.gold, side.choices) == ("mc", "C", ("left", "back", "right"))
    assert side.groups == {"task": ("object_rel_direction",), "type": ("object_rel_direction_hard",)}


@pytest.mark.parametrize(
    ("response", "gold", "wanted"),
    [("3", 4, 0.6), ("5.", 10, 0.1), ("8", 10, 0.7), ("about 3 m", 3, 1.0), ("three", 3, 1.0), ("I cannot tell", 3, 0.0)],
)
def test_relative_accuracy(release, response, gold, wanted) -> None:
    (item,) = release(VsiBench(), {"test.jsonl": [{**SIZE, "ground_truth": str(gold)}]})
    assert VsiBench().score(item, VsiBench().parse(item, response, "lenient"), None) == {"mra": pytest.approx(wanted)}


def test_the_overall_score_is_the_mean_of_tasks_and_of_levels_in_one(release) -> None:
    easy = {**SIDE, "question_type": "object_rel_direction_easy"}
    scored = [
        ScoredRow(item=item, answer="", scores={"mra" if item.task == "regression" else "accuracy": score})
        for item, score in zip(release(VsiBench(), {"test.jsonl": [SIZE, SIDE, SIDE, SIDE, easy]}), (0.8, 1, 1, 0, 0), strict=True)
    ]
    found = VsiBench().aggregate(scored)
    assert found["task=object_rel_direction/score"] == pytest.approx(100 / 3)  # hard 66.7, easy 0
    assert found["overall"] == pytest.approx((80 + 100 / 3) / 2)
    assert (found["accuracy"], found["mra"]) == (pytest.approx(50), pytest.approx(80))
    assert found["type=object_rel_direction_hard/accuracy"] == pytest.approx(200 / 3)


def test_the_debiased_subset(tmp_path, release) -> None:
    release(VsiBench(), {"test.jsonl": [SIZE, SIDE]})
    paths = BenchmarkPaths(folder=tmp_path / "vsi_bench")
    kept, left_out = VsiBench(debiased=True).load(paths)
    assert kept.source_id == "12"
    assert isinstance(left_out, Skipped)


def test_types_that_nobody_knows(release) -> None:
    with pytest.raises(DataError, match=r"test\.jsonl:1: unknown question type 'smell'"):
        release(VsiBench(), {"test.jsonl": [{**SIZE, "question_type": "smell"}]})
