"""Preflight: every gold through its own reward, in the form of a prediction."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BoxSpace, DataError, Reward, RewardInput, RewardResult, Sample
from evr1_core.config.schema import RewardConfig
from evr1_core.rollout.preflight import drawn, preflight
from evr1_core.rollout.scoring import Scorer
from evr1_plugins.rewards.boolean import Boolean
from evr1_plugins.rewards.mcq import MultipleChoice
from evr1_plugins.rewards.numerical import Numerical
from evr1_plugins.rewards.spatial_iou import SpatialIoU
from evr1_plugins.rewards.st_iou import SpatialTemporalIoU
from evr1_plugins.rewards.temporal_iou import TemporalIoU


def sample(number: int, task: str, answer: object, **fields: object) -> Sample:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return Sample(uid=f"r{number}", task=task, problem="", answer=text, origin=f"train.jsonl:{number}", **fields)  # type: ignore[arg-type]


TUBE = {"3": [64, 48, 320, 240], "4": [70, 50, 330, 250]}
GOOD = [
    sample(1, "multiple choice", "B. blue", options=("A. red", "B. blue")),
    sample(2, "multiple choice", "A,B", options=("A. red", "B. blue")),
    sample(3, "counting", 4),
    sample(4, "regression", "0"),
    sample(5, "boolean", True),
    sample(6, "temporal grounding", "00:03-00:05"),
    sample(7, "temporal grounding", {"time": [[1, 2], [5, 6]]}),
    sample(8, "temporal grounding", {"time": [[1, 2], [5, 6]]}, extra={"union": True}),
    sample(9, "spatial grounding", [10, 20, 30, 40]),
    sample(10, "spatial temporal grounding", {"time": [3, 4], "boxes": TUBE}),
    sample(11, "spatial temporal grounding", {"time": [3, 4], "boxes": {}}),
    sample(12, "tracking", {"boxes": TUBE}),
    sample(13, "multiple choice", "<answer>A</answer>", options=("A. red", "B. blue")),
]


def scorer() -> Scorer:
    plugins = [MultipleChoice(), Numerical(), Boolean(), TemporalIoU(), SpatialIoU(), SpatialTemporalIoU()]
    return Scorer({type(plugin).__name__: plugin for plugin in plugins}, {}, RewardConfig(), max_tokens=1)


@pytest.mark.parametrize(
    "space",
    [
        None,
        BoxSpace(kind="norm1000", width=640, height=480),
        BoxSpace(kind="resized", width=641, height=479, resized_width=308, resized_height=252),
    ],
)
def test_good_golds_score_one_in_any_box_space(space: BoxSpace | None) -> None:
    assert preflight(GOOD, scorer(), box_space=lambda _: space) == []


def test_every_problem_is_listed_with_its_place() -> None:
    bad = [
        sample(21, "multiple choice", "C", options=("A. red", "B. blue")),
        sample(22, "counting", "several"),
        sample(23, "temporal grounding", '<think>{"time": [1, 2]}</think><[broken]>'),
        sample(24, "temporal grounding", {"time": [-1, 2]}),
        sample(25, "spatial grounding", [10, 10, 10, 10]),
        sample(26, "tracking", {"time": [3, 4]}),
        sample(27, "boolean", "maybe"),
        sample(28, "spatial temporal grounding", {"time": [3, 4], "boxes": {"3": [1, 2, 3]}}),
    ]
    problems = preflight([*GOOD, *bad], scorer())
    assert sorted(problem.partition(":")[2].partition(":")[0] for problem in problems) == [str(n) for n in range(21, 29)]
    assert all(f"record '{one.uid}'" in problem for one, problem in zip(bad, sorted(problems), strict=True))


def test_boxes_without_a_frame_size_are_listed() -> None:
    [problem] = preflight([GOOD[8]], scorer(), box_space=lambda _: BoxSpace(kind="norm1000"))
    assert "width" in problem


class Half(Reward):
    """Never above 0.5; the second record is not judged."""

    api = 1
    tasks = frozenset({"half"})

    def score(self, item: RewardInput) -> RewardResult:
        return RewardResult(accuracy=None if item.sample.uid == "r2" else 0.5, parsed=True, note="at most half")


def test_a_gold_below_one_is_listed_with_type_and_reason() -> None:
    half = Scorer({"half": Half()}, {}, RewardConfig(), max_tokens=1)
    problems = preflight([sample(1, "half", "x"), sample(2, "half", "y")], half)
    assert problems == [
        "train.jsonl:1: record 'r1' (half): its own gold scores 0.5 with reward 'half' (at most half); gold 'x'",
        "train.jsonl:2: record 'r2' (half): was not judged with reward 'half' (at most half); gold 'y'",
    ]


def test_unknown_type_is_an_error() -> None:
    with pytest.raises(DataError, match="poetry"):
        preflight([sample(1, "poetry", "x")], scorer())


def test_draws_evenly_from_each_type() -> None:
    samples = [sample(n, "counting" if n % 3 else "boolean", "1") for n in range(30)]
    chosen = drawn(samples, 4)
    assert [one.uid for one in chosen] == ["r0", "r6", "r15", "r21", "r1", "r8", "r16", "r23"]
    assert drawn(samples, 0) == samples
    assert len(drawn(samples, 100)) == 30
