"""A run does not start to learn from shared prompts that say something else than separate rows."""

from __future__ import annotations

import copy

import attrs
import pytest
import torch

from evr1_core.api import ModelError
from evr1_core.config.schema import ModelConfig, RunConfig, TrainConfig
from evr1_core.registry.loading import load_class, resolve
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.selfcheck import RESPONSES, TOKENS, Looked, distance, excerpt, refuse_unequal
from evr1_core.train.session import sharing_notes
from evr1_plugins.algorithms.grpo import GRPO
from tests.core.train.test_prefix import groups
from tests.tiny import tiny_model


def made(monkeypatch=None, dtype="float32", **train):
    family, processor, module = tiny_model()
    if monkeypatch is not None:
        own = type(family).forward

        def leaking(self, model, batch, vision):
            """A text part that takes every response for one that follows the others."""
            triangle = torch.ones_like(batch.attention_mask).tril()
            return own(self, model, attrs.evolve(batch, attention_mask=triangle), vision)

        monkeypatch.setattr(type(family), "forward", leaking)
    config = RunConfig(train=TrainConfig(lr=1e-3, **train), model=ModelConfig(dtype=dtype))
    return Policy(copy.deepcopy(module), family, processor, config, total_updates=1)


def work(every):
    rows = sum(len(group.responses) for group in every)
    return Credited(groups=every, advantages=torch.ones(rows, 5), trained=torch.ones(rows, dtype=torch.bool))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_good_model_passes_and_keeps_no_gradient(dtype):
    policy = made(dtype=dtype)
    policy.check_sharing(groups())
    assert all(parameter.grad is None for parameter in policy.optimizer._parameters)


def test_responses_that_see_each_other_end_the_run_before_it_learns(monkeypatch):
    policy, every = made(monkeypatch), groups()
    before = copy.deepcopy(policy.module.state_dict())
    with pytest.raises(ModelError, match=r"train\.share_prefix: false") as error:
        policy.update(GRPO(), work(every))
    assert "'image'" in str(error.value)
    assert all(torch.equal(value, before[name]) for name, value in policy.module.state_dict().items())
    made(monkeypatch, share_prefix=False).update(GRPO(), work(every))  # nobody to see


def test_the_check_is_made_once(monkeypatch):
    policy, every = made(), groups()
    policy.update(GRPO(), work(every))
    monkeypatch.setattr(policy, "check_sharing", lambda groups: pytest.fail("checked again"))
    policy.update(GRPO(), work(every))


def test_little_is_looked_at_and_media_first():
    every = groups()
    long = [
        attrs.evolve(group, responses=[attrs.evolve(r, token_ids=r.token_ids * 20) for r in group.responses]) for group in every
    ]
    chosen = excerpt(long)
    assert len(chosen) == 2
    assert all(group.prompt.encoded.grid_thw is not None for group in chosen)
    assert [len(group.responses) for group in chosen] == [RESPONSES] * 2
    assert max(len(r.token_ids) for group in chosen for r in group.responses) == TOKENS
    assert excerpt([]) == []


def test_what_counts_as_apart():
    ours = Looked(logprobs=torch.tensor([-1.0, -2.0]), norm=3.0)
    theirs = Looked(logprobs=torch.tensor([-1.0, -4.0]), norm=2.0)
    assert distance(ours, theirs) == pytest.approx((2**0.5, 0.5))
    broken = Looked(logprobs=torch.tensor([float("nan"), -1.0]), norm=float("inf"))
    assert distance(ours, broken) == (0.0, 0.0)
    with pytest.raises(ModelError):
        refuse_unequal([distance(broken, ours)], torch.float32, ["a"])
    refuse_unequal([(0.05, 0.05)], torch.bfloat16, ["a"])
    with pytest.raises(ModelError, match=r"0\.05 apart"):
        refuse_unequal([(0.05, 0.0)], torch.float32, ["a"])


@pytest.mark.parametrize(("family", "share", "said"), [("qwen3_vl", True, 0), ("qwen3_5", True, 1), ("qwen3_5", False, 0)])
def test_a_run_says_where_prompts_cannot_be_shared(family, share, said):
    plugin = load_class(resolve("models", family))()
    notes = sharing_notes(RunConfig(train=TrainConfig(share_prefix=share)), plugin)
    assert len(notes) == said
    assert all("Qwen3_5 computes prompts anew for every response" in note for note in notes)
