"""Routing, composition and the contract between the scorer and its rewards."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
from attrs import define

from evr1_core.api import (
    BadGoldError,
    ClashError,
    ConfigError,
    DataError,
    NotJudgedError,
    PluginError,
    Reward,
    RewardInput,
    RewardResult,
    Sample,
)
from evr1_core.config.schema import FormatConfig, RewardChoice, RewardConfig
from evr1_core.rollout.scoring import Response, Scorer, overlong, score_all

GOOD = "<think>a</think><answer>{}</answer>"


@define(kw_only=True)
class Echo(Reward):
    """The answer itself is the score; "judge" is not judged."""

    api = 1
    tasks: ClassVar[frozenset[str]] = frozenset({"echo"})

    def score(self, item: RewardInput) -> RewardResult:
        if item.sample.answer == "broken":
            raise BadGoldError(item.sample, "good")
        if item.answer == "judge":
            raise NotJudgedError("the judge is out")
        if item.answer is None:
            return RewardResult(accuracy=0.0, parsed=False)
        return RewardResult(accuracy=float(item.answer), parsed=True, note="echoed")

    def well_formed(self, sample: Sample, answer: str) -> bool:
        return answer != "0.25"


@define(kw_only=True)
class Parts(Echo):
    parts = ("depth",)
    tasks = frozenset({"parts"})
    depth: float = 0.5

    def score(self, item: RewardInput) -> RewardResult:
        return RewardResult(accuracy=1.0, parsed=True, parts={"depth": self.depth})


@define(kw_only=True)
class Undeclared(Parts):
    tasks = frozenset({"undeclared"})

    def score(self, item: RewardInput) -> RewardResult:
        return RewardResult(accuracy=1.0, parsed=True)


def record(task: str = "echo", answer: str = "gold", uid: str = "r1") -> Sample:
    return Sample(uid=uid, task=task, problem="", answer=answer, origin="a.jsonl:1")


def response(text: str, task: str = "echo", num_tokens: int = 0) -> Response:
    return Response(sample=record(task), text=text, num_tokens=num_tokens)


def scorer(*, config: RewardConfig | None = None, weight: float = 1.0, **options: bool) -> Scorer:
    rewards = {"echo": Echo(), "parts": Parts(), "undeclared": Undeclared()}
    return Scorer(rewards, {"echo": RewardChoice(weight=weight)}, config or RewardConfig(), max_tokens=4096, **options)


def test_published_weights() -> None:
    [full, accuracy_only, format_only] = scorer().score([response(GOOD.format("1")), response("1"), response(GOOD.format("0"))])
    assert full.total == pytest.approx(1.0)
    assert accuracy_only.total == pytest.approx(0.9)
    assert format_only.total == pytest.approx(0.1)
    assert full.components == {"accuracy": 1.0, "format": 1.0}
    assert (full.reward, full.note, full.parsed, full.judged) == ("echo", "echoed", True, True)


def test_components_stay_unweighted() -> None:
    config = RewardConfig(accuracy_weight=0.5, format_weight=2.0, overlong_buffer=1024, overlong_factor=3.0)
    [scored] = scorer(config=config, weight=10.0).score([response(GOOD.format("0.5"), num_tokens=3584)])
    assert scored.components == {"accuracy": 0.5, "format": 1.0, "overlong": -0.5}
    assert scored.total == pytest.approx(10 * (0.5 * 0.5 + 2.0 - 3.0 * 0.5))


@pytest.mark.parametrize(
    ("length", "penalty"), [(0, 0.0), (3072, 0.0), (3073, -0.0009765625), (3584, -0.5), (4096, -1.0), (9999, -1.0)]
)
def test_overlong(length: int, penalty: float) -> None:  # algorithms.md, reward.overlong
    assert overlong(length, 4096, 1024) == penalty
    assert overlong(length, 4096, 0) == 0.0


def test_a_buffer_below_one_is_a_share_of_the_limit() -> None:
    one = scorer(config=RewardConfig(accuracy_weight=0.0, format_weight=1.0, overlong_buffer=0.25))  # 1024 of 4096 tokens
    lengths = (3072, 3584, 4096)
    found = one.score([response("1", num_tokens=length) for length in lengths])
    assert [each.components["overlong"] for each in found] == [0.0, -0.5, -1.0]


def test_declared_parts() -> None:
    one = scorer()
    [scored] = one.score([response(GOOD.format("x"), "parts")])
    assert scored.components == {"accuracy": 1.0, "format": 1.0, "depth": 0.5}
    assert one.parts == ("accuracy", "format", "depth")


def test_order_is_kept_across_rewards() -> None:
    scored = scorer().score([response("1"), response("x", "parts"), response("0.5")])
    assert [one.reward for one in scored] == ["echo", "parts", "echo"]
    assert [one.accuracy for one in scored] == [1.0, 1.0, 0.5]


def test_answer_form_counts_towards_the_format() -> None:
    [scored] = scorer().score([response(GOOD.format("0.25"))])
    assert scored.components["format"] == 0.0


def test_opened_by_the_template() -> None:
    one = scorer(opens_thinking=True)
    [cut, whole] = one.score([response("draft <answer>1</answer>"), response("a</think><answer>1</answer>")])
    assert (cut.accuracy, cut.parsed, cut.components["format"]) == (0.0, False, 0.0)
    assert whole.total == pytest.approx(1.0)
    assert one.answer(one.wrapped("x")) == "x"


def test_configured_tag_is_honoured_by_extraction() -> None:
    config = RewardConfig(format=FormatConfig(reasoning_tag="plan"))
    [scored] = scorer(config=config).score([response("<plan><answer>0</answer></plan><answer>1</answer>")])
    assert scored.accuracy == 1.0


def test_not_judged_is_not_wrong() -> None:
    [good, unjudged] = scorer().score([response(GOOD.format("1")), response(GOOD.format("judge"))])
    assert good.judged
    assert good.total == pytest.approx(1.0)
    assert not unjudged.judged
    assert unjudged.accuracy is None
    assert not unjudged.parsed
    assert unjudged.components == {"format": 1.0}
    assert "out" in unjudged.note


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "1.5"])
def test_values_out_of_range_are_the_plugins_fault(value: str) -> None:
    one = Scorer({"echo": Echo()}, {}, RewardConfig(), max_tokens=1, distributions={"echo": "evr1-reward-echo 2.0"})
    with pytest.raises(PluginError, match=r"'echo' of evr1-reward-echo 2\.0.*accuracy.*'r1'"):
        one.score([response(value)])


def test_parts_must_be_those_declared() -> None:
    with pytest.raises(PluginError, match=r"gave the parts \[\].*declares \['depth'\]"):
        scorer().score([response("x", "undeclared")])
    broken = Scorer({"parts": Parts(depth=math.nan)}, {}, RewardConfig(), max_tokens=1)
    with pytest.raises(PluginError, match="depth"):
        broken.score([response("x", "parts")])


def test_two_rewards_of_one_task() -> None:
    with pytest.raises(ClashError, match=r"'echo'.*'a' of dist-a.*'b' of dist-b"):
        Scorer({"a": Echo(), "b": Echo()}, {}, RewardConfig(), max_tokens=1, distributions={"a": "dist-a", "b": "dist-b"})


def test_task_that_nobody_serves() -> None:
    samples = [record("echo"), record("poetry", uid="p1"), record("poetry", uid="p2"), record("song", uid="s1")]
    with pytest.raises(DataError, match=r"echo, parts, undeclared") as caught:
        scorer().check_tasks(samples)
    assert len(caught.value.problems) == 2
    assert "'p1'" in caught.value.problems[0]
    with pytest.raises(DataError, match=r"a.jsonl:1: record 'r1'"):
        scorer().score([response("1", "poetry")])


def test_fallback() -> None:
    one = scorer(config=RewardConfig(fallback="echo"))
    one.check_tasks([record("poetry")])
    assert one.score([response("1", "poetry")])[0].accuracy == 1.0
    with pytest.raises(ConfigError, match=r"reward.fallback: 'nobody'"):
        scorer(config=RewardConfig(fallback="nobody"))


def test_broken_gold_is_an_error_and_all_are_listed() -> None:
    items = [response("1"), *(Response(sample=record(answer="broken", uid=uid), text="1") for uid in ("b1", "b2"))]
    with pytest.raises(BadGoldError, match="'b1'"):
        scorer().score(items)
    scored, problems = score_all(scorer(), items)
    assert [one is None for one in scored] == [False, True, True]
    assert len(problems) == 2


def test_broken_gold_that_is_allowed_is_not_judged() -> None:
    one = Scorer({"echo": Echo()}, {}, RewardConfig(), max_tokens=1, allow_bad_gold=True)
    good, broken = one.score([response("1"), Response(sample=record(answer="broken", uid="b1"), text="1")])
    assert good.accuracy == 1.0
    assert not broken.judged
    assert "'b1'" in broken.note
