"""Training steps on a real tiny model: how often it is updated, on what, and what the metrics say."""

from __future__ import annotations

import asyncio
import copy

import pytest
import torch

from evr1_core.api import Media, Sample
from evr1_core.config.schema import MixConfig, RewardConfig, RolloutConfig, RunConfig, TrainConfig
from evr1_core.data.prompts import PromptTemplates
from evr1_core.rollout.collect import Mixer
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scorer
from evr1_core.train.loop import Trainer
from evr1_core.train.policy import Policy
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.sft import SupervisedFineTuning
from evr1_plugins.engines.hf import HuggingFaceEngine
from evr1_plugins.rewards.mcq import MultipleChoice
from tests.tiny import tiny_folder, tiny_model, video_clip

OFFLINE = "<think>x</think><answer>A</answer>"


class Listeners:
    """Answers ``evr1_drop_groups`` with fixed sets."""

    def __init__(self, *dropped):
        self.dropped = dropped

    def call(self, event, **arguments):
        return list(self.dropped) if event == "evr1_drop_groups" else []


class OneClip:
    """Every file is the same little video."""

    def clip(self, media):
        return video_clip(4, 64, 32)


def samples(count, offline=None):
    media = (Media(kind="video", path="v"),)
    return [
        Sample(
            uid=f"s{i}",
            task="multiple choice",
            problem="<video>Which?",
            answer="A",
            options=("A. x", "B. y"),
            media=media,
            offline=offline,
        )
        for i in range(count)
    ]


def trainer(algorithm, listeners=None, mix=False, n=3, **train):
    family, processor, module = tiny_model()
    config = RunConfig(
        train=TrainConfig(lr=1e-3, **train), rollout=RolloutConfig(n=n, max_response_tokens=6), mix=MixConfig(enabled=mix)
    )
    module = copy.deepcopy(module)
    scorer = Scorer({"mcq": MultipleChoice()}, {}, RewardConfig(), max_tokens=6)
    engine = HuggingFaceEngine()
    asyncio.run(engine.start(str(tiny_folder()), family, processor, module))
    encoder = PromptEncoder(
        family=family, processor=processor, templates=PromptTemplates("", "think"), clips=OneClip(), max_tokens=1000
    )
    mixer = Mixer(
        config=config.mix,
        tokenizer=processor.tokenizer,
        eos_ids=tuple(module.generation_config.eos_token_id),
        banned_ids=family.banned_ids(processor),
        max_tokens=6,
        scorer=scorer,
    )
    return Trainer(
        config=config,
        algorithm=algorithm,
        policy=Policy(module, family, processor, config, total_updates=10),
        engine=engine,
        encoder=encoder,
        scorer=scorer,
        mixer=mixer,
        hooks=listeners or Listeners(),
    )


def weights(own):
    return torch.cat([parameter.detach().flatten() for parameter in own.policy.module.parameters()]).clone()


@pytest.mark.parametrize(
    ("options", "updates"), [({}, 1), ({"prompts_per_update": 2}, 2), ({"ppo_epochs": 2, "prompts_per_update": 3}, 4)]
)
def test_number_of_updates(options, updates):
    own = trainer(GRPO(), mix=True, **options)
    metrics = asyncio.run(own.step(1, samples(4, OFFLINE)))
    assert metrics["actor/updates"] == updates
    assert metrics["timing_s/step"] >= metrics["timing_s/gen"]


def test_a_stored_trajectory_makes_the_difference_for_a_model_that_knows_nothing():
    without = asyncio.run(trainer(GRPO()).step(1, samples(2)))
    assert without["critic/advantages/max"] == 0
    own = trainer(GRPO(), mix=True)
    metrics = asyncio.run(own.step(1, samples(2, OFFLINE)))
    assert metrics["mix_policy/replaced_groups"] == 2
    assert metrics["mix_policy/off_score"] == pytest.approx(0.9 + 0.1, abs=0.11)  # cut at six tokens, it may be ill-formed
    assert [response.offline for group in own.last_groups for response in group.responses] == [False, False, True] * 2


def test_dropped_groups_are_not_trained_on():
    own = trainer(GRPO(), Listeners({0}, {1}), mix=True)
    before = weights(own)
    metrics = asyncio.run(own.step(1, samples(2, OFFLINE)))
    assert metrics["actor/updates"] == 0
    assert torch.equal(weights(own), before)


def test_supervised_steps_sample_nothing_and_lower_the_loss():
    own = trainer(SupervisedFineTuning())
    losses = [asyncio.run(own.step(step, samples(2, OFFLINE)))["actor/pg_loss"] for step in (1, 2, 3)]
    assert losses[0] > losses[1] > losses[2]
    assert all(response.offline for group in own.last_groups for response in group.responses)


def test_a_step_is_reproducible():
    results = []
    for _ in range(2):
        own = trainer(GRPO(), mix=True, prompts_per_update=1)
        asyncio.run(own.step(1, samples(3, OFFLINE)))
        results.append(weights(own))
    assert torch.equal(*results)
