"""Two steps of every built-in algorithm on a real tiny model; what reference model, critic, correction and filter do in them."""

from __future__ import annotations

import asyncio
import copy
import math

import pytest
import torch
from attrs import evolve

from evr1_core.api import ModelError, Rollout
from evr1_core.config.schema import (
    CorrectionConfig,
    CriticConfig,
    FilterConfig,
    KLConfig,
    MixConfig,
    RewardConfig,
    RolloutConfig,
    RunConfig,
    TrainConfig,
)
from evr1_core.data.prompts import PromptTemplates
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.loading import load_class, resolve
from evr1_core.rollout.collect import Mixer
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scorer
from evr1_core.train.critic import Critic
from evr1_core.train.loop import Models, Trainer
from evr1_core.train.policy import Policy
from evr1_core.train.reference import Reference
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.ppo import PPO
from evr1_plugins.engines.hf import HuggingFaceEngine
from evr1_plugins.rewards.mcq import MultipleChoice
from tests.core.train.test_loop import OFFLINE, Listeners, OneClip, samples, weights
from tests.tiny import tiny_folder, tiny_model

ALGORITHMS = sorted(ref.name for ref in Catalog.scan().group("algorithms") if ref.dist == "evr1")


class Planned(HuggingFaceEngine):
    """The real engine, but some texts are set, so that their rewards are known; log-probs may be off by ``shift``."""

    def plan(self, texts, shift=0.0):
        self._texts, self._shift = texts, shift
        return self

    async def generate(self, requests):
        groups = await super().generate(requests)
        return [
            [self._planned(request, place, one) for place, one in enumerate(group)]
            for request, group in zip(requests, groups, strict=True)
        ]

    def _planned(self, request, place, rollout):
        text = self._texts(request, place)
        logprobs = tuple(value + self._shift for value in rollout.logprobs)
        return Rollout(
            text=rollout.text if text is None else text, token_ids=rollout.token_ids, logprobs=logprobs, finish=rollout.finish
        )


def first_is_right(request, place):
    return f"<think>x</think><answer>{'A' if place == 0 else 'B'}</answer>"


def trainer(algorithm, texts=first_is_right, shift=0.0, n=3, engine=None, **sections):
    family, processor, module = tiny_model()
    train = sections.pop("train", {})
    config = RunConfig(train=TrainConfig(lr=1e-3, **train), rollout=RolloutConfig(n=n, max_response_tokens=6), **sections)
    module = copy.deepcopy(module)
    scorer = Scorer({"mcq": MultipleChoice()}, {}, RewardConfig(), max_tokens=6)
    engine = Planned().plan(texts, shift)
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
    models = Models()
    if config.kl.place != "off":
        models.reference = Reference(copy.deepcopy(module), family, processor, config)
    if "critic" in algorithm.needs:
        models.critic = Critic(copy.deepcopy(module), family, processor, config, total_updates=10)
    return Trainer(
        config=config,
        algorithm=algorithm,
        policy=Policy(module, family, processor, config, total_updates=10),
        engine=engine,
        encoder=encoder,
        scorer=scorer,
        mixer=mixer,
        hooks=Listeners(),
        models=models,
    )


def step(own, number=1, count=2, more=None):
    return asyncio.run(own.step(number, samples(count, OFFLINE), more))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_takes_steps(name):
    algorithm = load_class(resolve("algorithms", name))()
    own = trainer(algorithm, mix=MixConfig(enabled="offline" in algorithm.needs and algorithm.rollouts))
    before = weights(own)
    for number in (1, 2):
        metrics = step(own, number)
        assert metrics["actor/updates"] == 1
        assert all(math.isfinite(value) for key, value in metrics.items() if key != "critic/vf_explained_var")
    assert not torch.equal(weights(own), before)


def test_the_kl_to_itself_is_nothing_and_grows_with_training():
    for place, key in (("loss", "actor/kl_loss"), ("reward", "actor/reward_kl_penalty")):
        own = trainer(GRPO(), kl=KLConfig(place=place, coef=0.1, kind="k3" if place == "loss" else "k1"))
        assert step(own, 1)[key] == pytest.approx(0, abs=1e-5)
        after = step(own, 2)
        assert after["actor/kl_coef"] == 0.1
        assert abs(after[key]) > 1e-4


def test_the_kl_in_the_reward_is_taken_off_every_token():
    own = trainer(GRPO(), kl=KLConfig(place="reward", coef=0.5, kind="k1"))
    step(own, 1)
    metrics = step(own, 2)
    assert metrics["critic/rewards/mean"] != pytest.approx(metrics["critic/score/mean"], abs=1e-6)


def test_an_adaptive_factor_follows_the_kl():
    own = trainer(GRPO(), kl=KLConfig(place="loss", coef=0.1, controller="adaptive", target=0.1, horizon=60))
    assert step(own, 1)["actor/kl_coef"] == 0.1
    assert step(own, 2)["actor/kl_coef"] == pytest.approx(0.1 * (1 - 0.2 * 6 / 60))  # KL 0: the error is cut at -0.2; six responses


def test_a_sampler_that_is_off_is_seen_and_weighed():
    exact = step(trainer(GRPO()))
    assert exact["rollout_corr/logprob_diff_max"] < 1e-4
    assert exact["rollout_corr/is_mean"] == pytest.approx(1, abs=1e-4)
    off = step(trainer(GRPO(), shift=-0.5))  # the trainer gives every token e^0.5 times the probability
    assert off["rollout_corr/logprob_diff_mean"] == pytest.approx(0.5, abs=1e-4)
    assert off["rollout_corr/is_mean"] == pytest.approx(math.exp(0.5), abs=1e-3)
    assert off["rollout_corr/frac_high"] == 0
    capped = step(trainer(GRPO(), shift=-1.0))
    assert (capped["rollout_corr/is_mean"], capped["rollout_corr/frac_high"]) == (pytest.approx(2.0), 1)


def test_weights_scale_the_update_and_bypass_takes_the_sampler_s_word():
    def loss(**options):
        own = trainer(GRPO(clip_high=9.0, dual_clip=None), shift=-0.5, correction=CorrectionConfig(**options))
        metrics = step(own)
        return metrics["actor/grad_norm"], metrics["actor/ratio_mean"]

    plain, ratio = loss(mode="off")
    assert ratio == pytest.approx(1)
    assert loss(mode="truncate")[0] == pytest.approx(plain * math.exp(0.5), rel=1e-3)
    assert loss(mode="mask", high=1.2, low=0.8)[0] == 0
    assert loss(mode="bypass")[1] == pytest.approx(math.exp(0.5), rel=1e-3)


def test_stored_trajectories_are_weighed_by_what_they_were_recorded_with():
    def loss(mode, shift):
        own = trainer(GRPO(off_mode=mode), texts=lambda request, place: "nothing", mix=MixConfig(enabled=True))
        stored = own.mixer.only_stored(own.encoder.encode(samples(2, OFFLINE)))
        unseen = [-1.0] * (len(own.mixer.tokenizer(OFFLINE, add_special_tokens=False)["input_ids"]) + 1 - 6)  # behind the limit
        logprobs = [[value - shift for value in row] + unseen for row in own.policy.logprobs(stored).tolist()]
        records = [evolve(each, offline_logprobs=tuple(row)) for each, row in zip(samples(2, OFFLINE), logprobs, strict=True)]
        return asyncio.run(own.step(1, records))["actor/pg_loss"]

    same = loss("is", 0.0)
    assert same == pytest.approx(loss("on_policy", 0.0), abs=1e-6)
    assert (loss("is", 0.5) - same) / (loss("is", 0.2) - same) == pytest.approx(math.expm1(0.5) / math.expm1(0.2), rel=1e-3)
    assert loss("is", 1.0) == pytest.approx(loss("is", 3.0), abs=1e-6)  # off_max = 2 bounds both


def test_log_probabilities_of_another_tokenizer_are_refused():
    own = trainer(GRPO(off_mode="is"), mix=MixConfig(enabled=True))
    with pytest.raises(ModelError, match=r"trajectory of 's0' has \d+ tokens, its end token included, and 2 recorded"):
        asyncio.run(own.step(1, [evolve(each, offline_logprobs=(-1.0, -1.0)) for each in samples(1, OFFLINE)]))


def test_an_entropy_bonus_raises_the_entropy():
    def entropy(coef):
        own = trainer(GRPO(), texts=lambda request, place: "nothing", train={"entropy_coef": coef})
        step(own, 1)
        return step(own, 2)["actor/entropy"]

    assert entropy(1.0) > entropy(0.0)


def test_responses_that_were_cut_off_count_for_the_group_alone():
    own = trainer(GRPO(), train={"mask_truncated": True})
    before = weights(own)
    metrics = step(own)  # six random tokens: hardly any response ends
    cut = [response.truncated for group in own.last_groups for response in group.responses]
    assert all(cut)
    assert metrics["actor/updates"] == 0
    assert torch.equal(weights(own), before)


def test_a_critic_learns_alone_first():
    own = trainer(PPO(), critic=CriticConfig(lr=1e-2, warmup_steps=2))
    before = weights(own)
    losses = [step(own, number)["critic/vf_loss"] for number in (1, 2)]
    assert torch.equal(weights(own), before)
    metrics = step(own, 3)
    assert not torch.equal(weights(own), before)
    assert losses[0] > losses[1]
    assert metrics["critic/values/mean"] != 0
    assert "critic/grad_norm" in metrics


def test_the_greedy_response_is_remax_s_baseline():
    remax = load_class(resolve("algorithms", "remax"))()
    own = trainer(remax, texts=lambda request, place: "<answer>A</answer>" if request.sampling.temperature == 0 else None)
    metrics = step(own)
    assert metrics["critic/greedy_score/mean"] == pytest.approx(0.9)  # right, without reasoning
    assert metrics["critic/advantages/mean"] == pytest.approx(metrics["critic/score/mean"] - 0.9, abs=0.05)


def test_dynamic_sampling_goes_on_until_accuracies_differ():
    """Of the first three batches, only the second's groups differ."""
    batches = []

    def texts(request, place):
        right = place == 0 and len(batches) == 2
        return f"<think>x</think><answer>{'A' if right else 'B'}</answer>"

    own = trainer(GRPO(), texts=texts, filter=FilterConfig(dynamic=True, max_tries=3))

    def more():
        batches.append(len(batches))
        return [evolve(sample, uid=f"{sample.uid}-{len(batches)}") for sample in samples(2)]

    more()
    metrics = step(own, more=more)
    assert (metrics["filter/tries"], metrics["filter/seen"], metrics["filter/kept"], metrics["filter/exhausted"]) == (2, 4, 2, 0)
    assert [group.prompt.sample.uid for group in own.last_groups] == ["s0-2", "s1-2"]
    assert metrics["group/zero_std_frac"] == 0.5
    assert metrics["critic/advantages/max"] > 0


def test_groups_that_fill_the_batch_up_teach_nothing():
    """The first of the others does: its responses are all wrong and differ in form alone, which would get unit variance."""

    def texts(request, place):
        if request.uid == "s0-2":
            return f"<think>x</think><answer>{'A' if place == 0 else 'B'}</answer>"
        return "<think>x</think><answer>B</answer>" if place == 0 else "B"

    seen = []

    def more():
        seen.append(len(seen))
        return [evolve(sample, uid=f"{sample.uid}-{len(seen) + 1}") for sample in samples(2)]

    own = trainer(GRPO(), texts=texts, filter=FilterConfig(dynamic=True, max_tries=3))
    update, works = own.policy.update, []
    own.policy.update = lambda algorithm, work, *rest: works.append(work) or update(algorithm, work, *rest)
    metrics = step(own, more=more)
    assert [metrics[f"filter/{name}"] for name in ("tries", "seen", "kept", "surplus", "exhausted")] == [3, 6, 1, 0, 1]
    assert [group.prompt.sample.uid for group in own.last_groups] == ["s0-2", "s0"]
    kept, filler = works[0].advantages[:3], works[0].advantages[3:]
    assert (kept.abs().sum(1) > 0).all()
    assert not filler.any()
    assert works[0].trained.all()  # they count in the denominators, as rows of advantage 0 do


def test_a_budget_of_tokens_changes_no_number():
    by_groups, by_tokens = trainer(GRPO()), trainer(GRPO(), train={"tokens_per_batch": 120})
    results = [step(own, count=5) for own in (by_groups, by_tokens)]
    assert results[0]["actor/grad_norm"] == pytest.approx(results[1]["actor/grad_norm"], rel=1e-4)
    assert results[0]["actor/pg_loss"] == pytest.approx(results[1]["actor/pg_loss"], abs=1e-6)
    parts = by_tokens.policy.parts(by_tokens.last_groups)
    assert len(parts) > 1
    assert sorted(torch.cat([part.rows for part in parts]).tolist()) == list(range(15))
