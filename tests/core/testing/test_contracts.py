"""The contracts catch what they are there to catch."""

import time

import pytest
import torch
from attrs import define

from evr1_core.api import Advantages, Algorithm, LossResult, Reward, RewardResult, Tracker
from evr1_core.testing import SAMPLES, check_algorithm, check_reward, check_tracker, sample
from evr1_core.testing import rewards as contract


@define(kw_only=True)
class Exact(Reward):
    api = 1
    tasks = frozenset({"ocr"})

    def score(self, item):
        right = item.answer is not None and item.answer.strip() == item.sample.answer
        return RewardResult(accuracy=float(right), parsed=bool(item.answer and item.answer.strip()))


def result(**values):
    return lambda self, item: RewardResult(**{"accuracy": 1.0, "parsed": True, **values})


def crash_on_brackets(self, item):
    if item.answer and item.answer.startswith("["):
        raise RecursionError("deep")
    return Exact.score(self, item)


def slow_on_long(self, item):
    if item.answer and len(item.answer) > 10_000:
        time.sleep(0.6)
    return Exact.score(self, item)


def parts_only_when_right(self, item):
    given = Exact.score(self, item)
    return RewardResult(accuracy=given.accuracy, parsed=given.parsed, parts={"extra": 1.0} if given.accuracy else {})


BAD_REWARDS = {
    "scores nothing": (dict(score=result(accuracy=0.5)), "scores 0.5, not 1"),
    "never judges": (dict(score=result(accuracy=None)), "is not judged"),
    "rewards silence": (dict(score=result()), "not 0"),
    "above 1": (dict(score=result(accuracy=1.5)), r"accuracy 1.5 is not in \[0, 1\]"),
    "nan": (dict(score=result(accuracy=float("nan"))), "accuracy nan"),
    "undeclared part": (dict(score=result(parts={"extra": 1.0})), r"parts \['extra'\], declared \[\]"),
    "missing part": (dict(score=parts_only_when_right, parts=("extra",)), r"parts \[\], declared \['extra'\]"),
    "infinite part": (dict(score=result(parts={"extra": float("inf")}), parts=("extra",)), "part extra is inf"),
    "no result": (dict(score=lambda self, item: 1.0), "gave a float"),
    "own batch": (dict(score_batch=lambda self, items: []), "score_batch differs"),
    "slow": (dict(score=slow_on_long), "took 0.6 s"),
    "unfolded task": (dict(tasks=frozenset({"Open-Ended"})), "its canonical form is 'open ended'"),
    "no task": (dict(tasks=frozenset()), "tasks is empty"),
    "unknown task": (dict(tasks=frozenset({"juggling"})), "no made-up record for juggling"),
}


def test_a_good_reward_passes():
    check_reward(Exact())
    check_reward(Exact(), samples=[sample("reading", "STOP")])


@pytest.mark.parametrize("name", BAD_REWARDS)
def test_a_bad_reward_is_caught(name, monkeypatch):
    monkeypatch.setattr(contract, "SECONDS", 0.5)
    changes, message = BAD_REWARDS[name]
    with pytest.raises(AssertionError, match=message):
        check_reward(type("Bad", (Exact,), changes)())


def test_an_exception_in_a_reward_comes_through():
    with pytest.raises(RecursionError):
        check_reward(type("Bad", (Exact,), {"score": crash_on_brackets})())


def test_made_up_records_have_canonical_types():
    for task, each in SAMPLES.items():
        assert task == each.task == " ".join(task.lower().replace("_", " ").replace("-", " ").split())


@define(kw_only=True)
class Plain(Algorithm):
    api = 1

    def advantages(self, batch):
        return Advantages(values=batch.rewards.unsqueeze(1) * batch.mask)

    def policy_loss(self, batch):
        weights = 1.0 if batch.weights is None else batch.weights
        return LossResult(loss=-(batch.logprobs * batch.advantages * weights * batch.mask).sum() / batch.global_tokens)


def keep_numbers(self, batch):
    return batch.rewards


BAD_ALGORITHMS = {
    "outside the mask": (
        dict(advantages=lambda self, batch: Advantages(values=batch.rewards.unsqueeze(1).expand_as(batch.mask))),
        "not 0 outside",
    ),
    "wrong shape": (dict(advantages=lambda self, batch: Advantages(values=batch.rewards)), "shape"),
    "not finite": (dict(advantages=lambda self, batch: Advantages(values=torch.where(batch.mask, torch.inf, 0.0))), "not finite"),
    "by position": (
        dict(advantages=lambda self, batch: Advantages(values=torch.arange(len(batch.rewards)).unsqueeze(1) * batch.mask * 1.0)),
        "depend on the order",
    ),
    "no returns": (dict(needs=frozenset({"critic"})), "gives no returns"),
    "local count": (
        dict(policy_loss=lambda self, batch: LossResult(loss=-(batch.logprobs * batch.advantages * batch.mask).mean())),
        "the loss depends on how the batch is split",
    ),
    "loss per token": (
        dict(policy_loss=lambda self, batch: LossResult(loss=-batch.logprobs * batch.advantages)),
        "a scalar is asked for",
    ),
    "unmasked loss": (
        dict(policy_loss=lambda self, batch: LossResult(loss=-batch.logprobs.sum() / batch.global_tokens)),
        "outside the mask get a gradient",
    ),
    "overflow": (
        dict(
            policy_loss=lambda self, batch: LossResult(loss=((batch.logprobs - batch.old_logprobs) * 100 * batch.mask).exp().sum())
        ),
        "is inf|not finite",
    ),
    "keep": (dict(keep=keep_numbers), "not bool"),
    "weights": (
        dict(policy_loss=lambda self, batch: LossResult(loss=self.mean(-batch.logprobs * batch.advantages, batch))),
        "not multiplied by LossBatch.weights",
    ),
}


def test_a_good_algorithm_passes():
    check_algorithm(Plain())


@pytest.mark.parametrize("name", BAD_ALGORITHMS)
def test_a_bad_algorithm_is_caught(name):
    changes, message = BAD_ALGORITHMS[name]
    with pytest.raises(AssertionError, match=message):
        check_algorithm(type("Bad", (Plain,), changes)())


def test_a_tracker_that_cannot_take_nan_is_caught(tmp_path):
    class Strict(Tracker):
        api = 1

        def start(self, config, folder, total_steps):
            pass

        def log(self, step, metrics):
            assert all(value == value for value in metrics.values())

    with pytest.raises(AssertionError):
        check_tracker(Strict(), tmp_path)
