"""Switches that save memory change no result."""

from __future__ import annotations

import copy

import pytest
import torch
from attrs import evolve

from evr1_core.api import ConfigError
from evr1_core.config.schema import ModelConfig, RolloutConfig, RunConfig, TrainConfig
from evr1_core.train.memory import checkpoint_activations
from evr1_core.train.policy import Policy
from evr1_plugins.algorithms.grpo import GRPO
from tests.core.train.hybrid_worker import credited, group
from tests.tiny import tiny_model


def policy(family="qwen3_vl", *, model=None, **train):
    plugin, processor, module = tiny_model(family)
    train = TrainConfig(groups_per_batch=1, **train)
    config = RunConfig(train=train, rollout=RolloutConfig(temperature=0.8), model=model or ModelConfig())
    return Policy(copy.deepcopy(module), plugin, processor, config, total_updates=10)


def work(own, kinds=("mixed", "text")):
    return credited([group(own.family, own.processor, kind) for kind in kinds], 0)


def gradients(own):
    return [parameter.grad for parameter in own.module.parameters()]


@pytest.mark.parametrize("family", ["qwen3_vl", "qwen3_5"])
def test_checkpointing_leaves_gradients_bit_identical(family):
    plain, saving = policy(family), policy(family, gradient_checkpointing=True)
    blocks = [module for module in saving.module.modules() if getattr(module, "gradient_checkpointing", False)]
    assert len(blocks) >= 4  # of both parts
    expected = plain.backward(GRPO(), work(plain))
    assert saving.backward(GRPO(), work(saving)) == expected
    for ours, theirs in zip(gradients(plain), gradients(saving), strict=True):
        assert torch.equal(ours, theirs)


def test_checkpointing_keeps_less_for_the_backward_pass():
    def kept(own):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
            own.module.train()
            own.forward(work(own).groups, False)
        return sum(sizes)

    assert kept(policy(gradient_checkpointing=True)) < 0.6 * kept(policy())


def test_a_model_that_cannot_is_named():
    with pytest.raises(ConfigError, match=r"train\.gradient_checkpointing: Linear does not support it"):
        checkpoint_activations(torch.nn.Linear(2, 2))


def test_small_updates_are_not_lost_in_bfloat16():
    """At this rate no weight of this size moves by half a unit in its last place, so that plain bfloat16 would stand still."""
    own = policy(model=ModelConfig(dtype="bfloat16"), lr=1e-6, weight_decay=0.0)
    low = dict(own.module.named_parameters())["model.language_model.layers.0.mlp.up_proj.weight"]
    place = [parameter is low for parameter in own.module.parameters()].index(True)
    assert low.dtype == torch.bfloat16
    assert {parameter.dtype for parameter in own.optimizer._parameters} == {torch.float32}
    before = own.optimizer._masters.parameters[place].detach().clone()
    for _ in range(3):
        metrics = own.update(GRPO(), work(own))
    moved = own.optimizer._masters.parameters[place].detach() - before
    assert metrics["actor/grad_norm"] > 0
    assert moved.abs().max() == pytest.approx(3e-6, rel=0.2)
    assert torch.equal(low, own.optimizer._masters.parameters[place].to(torch.bfloat16))
    assert low.grad is None


def test_gradients_of_parts_are_added_in_float32():
    """Two parts of four tokens: alone, each has twice the gradient, which bfloat16 shows exactly."""

    def gradient(*trained):
        own = policy(model=ModelConfig(dtype="bfloat16"))
        rows = torch.tensor([number in trained for number in (0, 0, 1, 1)])
        own.backward(GRPO(), evolve(work(own), trained=rows))
        return [parameter.grad for parameter in own.optimizer._masters.parameters]

    added = [(one + other) / 2 for one, other in zip(gradient(0), gradient(1), strict=True)]
    together = gradient(0, 1)
    assert {each.dtype for each in together} == {torch.float32}
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(added, together, strict=True))
    assert any(not torch.equal(each, each.bfloat16().float()) for each in together)


def test_bfloat16_computes_what_a_model_loaded_in_bfloat16_does():
    own = policy(model=ModelConfig(dtype="bfloat16"))
    loaded = own.family.load(own.module.config._name_or_path, dtype="bfloat16").eval()
    for name, buffer in loaded.named_buffers():
        assert torch.equal(buffer, own.module.get_buffer(name)), name
    theirs = policy()
    theirs.module, theirs.model.model = loaded, loaded
    groups = work(own).groups
    assert torch.equal(own.logprobs(groups), theirs.logprobs(groups))
