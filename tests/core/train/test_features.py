"""A frozen vision tower sees the media of a prompt once a step, and nothing else changes."""

from __future__ import annotations

import copy

import pytest
import torch

from evr1_core.api import ModelError, VisionFeatures
from evr1_core.config.schema import LoraConfig, RunConfig, TrainConfig
from evr1_core.train.features import FeatureStore, _split, is_frozen
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.reference import Reference
from evr1_plugins.algorithms.grpo import GRPO
from tests.core.train.test_prefix import groups
from tests.tiny import tiny_model

FROZEN = {"freeze": {"train": TrainConfig(freeze_vision=True, groups_per_batch=2)}, "lora": {"lora": LoraConfig(rank=2)}}


def made(**settings):
    family, processor, module = tiny_model()
    return Policy(copy.deepcopy(module), family, processor, RunConfig(**settings), total_updates=4)


def work(every):
    rows = sum(len(group.responses) for group in every)
    advantages = torch.randn(rows, 5, generator=torch.Generator().manual_seed(0))
    return Credited(groups=every, advantages=advantages, trained=torch.ones(rows, dtype=torch.bool))


@pytest.fixture
def seen(monkeypatch):
    """Numbers of patches that went through the tower."""
    counts = []
    own = type(tiny_model()[0]).vision

    def counted(self, model, patches, grid_thw):
        counts.append(len(patches))
        return own(self, model, patches, grid_thw)

    monkeypatch.setattr(type(tiny_model()[0]), "vision", counted)
    return counts


@pytest.mark.parametrize("way", FROZEN)
def test_once_a_step_for_old_reference_and_all_updates(way, seen):
    every, policy = groups(), made(**FROZEN[way])
    reference = Reference(copy.deepcopy(tiny_model()[2]), policy.family, policy.processor, RunConfig(), store=policy.model.store)
    policy.logprobs(every)
    reference.rows(every)
    policy.update(GRPO(), work(every))
    policy.update(GRPO(), work(every[::-1]))
    patches = sum(len(group.prompt.encoded.patches) for group in every if group.prompt.encoded.patches is not None)
    assert sum(seen) == patches
    policy.forget()
    policy.logprobs(every)
    assert sum(seen) == 2 * patches


@pytest.mark.parametrize("way", FROZEN)
def test_results_are_those_without_a_store(way):
    every, policy, plain = groups(), made(**FROZEN[way]), made(**FROZEN[way])
    plain.model.store = None
    for _ in range(2):
        assert torch.equal(policy.logprobs(every), plain.logprobs(every))
        first, second = (each.update(GRPO(), work(every)) for each in (policy, plain))
        assert first == pytest.approx(second, rel=1e-5)


def test_a_trained_tower_sees_them_each_time(seen):
    every, policy = groups(), made()
    assert policy.model.store is None
    policy.logprobs(every)
    once = sum(seen)
    policy.logprobs(every)
    assert sum(seen) == 2 * once
    policy.forget()


def test_separate_rows_share_the_pass_of_their_prompt(seen):
    every = groups()
    made(train=TrainConfig(share_prefix=False)).logprobs(every)
    assert sum(seen) == sum(len(group.prompt.encoded.patches) for group in every if group.prompt.encoded.patches is not None)


def test_only_a_tower_that_is_there_is_frozen():
    module = torch.nn.Linear(2, 2).requires_grad_(False)
    assert not is_frozen(module)
    assert is_frozen(torch.nn.ModuleDict({"visual": module}))
    assert not is_frozen(torch.nn.ModuleDict({"visual": torch.nn.Linear(2, 2)}))


def test_features_go_with_their_prompt():
    store, every = FeatureStore(), groups()
    large = torch.randn(100, 4)
    store.put(every[0].prompt, VisionFeatures(embeds=large[:2]))
    kept = store.get(every[0].prompt, torch.device("cpu"))
    assert torch.equal(kept.embeds, large[:2])
    assert kept.embeds.untyped_storage().nbytes() == 2 * 4 * 4  # not the whole of what they are a part of
    assert len(store._own) == 1
    del every
    assert len(store._own) == 0


def test_another_number_of_features_is_an_error():
    with pytest.raises(ModelError, match="visual tokens and 1 vision features"):
        _split(VisionFeatures(embeds=torch.zeros(1, 4)), [groups()[0].prompt])
