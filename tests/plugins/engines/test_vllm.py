"""vLLM itself, in its build for CPUs: the same prompts, positions, log-probs and greedy responses as in training."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.util import find_spec

import pytest
import torch
from attrs import define

from evr1_core.api import EngineError, Media, Prompt, Request, Sample, Sampling, WeightsLostError
from evr1_core.config.schema import ModelConfig, RolloutConfig, RunConfig, TrainConfig
from evr1_core.registry.loading import load_class, resolve
from evr1_core.rollout.groups import Group, Response, encode_prompt, sampled
from evr1_core.testing import check_engine
from evr1_core.train.policy import Credited, Policy
from evr1_plugins.engines.hf import HuggingFaceEngine
from evr1_plugins.engines.vllm import VllmEngine
from tests.plugins.models.made_up import CASES, FAMILIES, clips_of
from tests.tiny import image_clip, tiny_folder, tiny_model, video_clip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed (make setup-vllm)"),
]

OPTIONS = {"enforce_eager": True, "max_model_len": 4096, "cache_gb": 0.5, "start_limit": 300.0}
TIMED = {
    "variable rate": (0.0, 0.2, 0.9, 1.0, 3.5, 4.0),
    "a second apart": (0.0, 1.0, 2.0, 3.0),
    "odd": (0.0, 0.5, 1.0, 1.5, 2.0),
    "long": tuple(number / 2 for number in range(24)),
}


@define
class Live:
    """vLLM with the weights of a trained policy."""

    name: str
    engine: VllmEngine
    family: object
    processor: object
    policy: Policy
    runner: asyncio.Runner

    def prompt(self, clips, words="What is it?"):
        media = tuple(Media(kind=clip.kind, path="m") for clip in clips)
        sample = Sample(uid=words, task="t", problem=words, answer="A", media=media)
        return encode_prompt(self.family, self.processor, sample, Prompt(parts=(*media, words)), clips, 4000)

    def ask(self, prompts, engine=None, **sampling):
        requests = [
            Request(uid=prompt.sample.uid, text=prompt.text, clips=prompt.clips, sampling=Sampling(**{"seed": number, **sampling}))
            for number, prompt in enumerate(prompts)
        ]
        return self.runner.run((engine or self.engine).generate(requests))

    def sync(self):
        self.runner.run(self.engine.load_weights(self.policy.weights()))


def prompts_of(live, count):
    """Text, image, video and mixed prompts in turn."""
    side = live.family.grid.factor
    kinds = (
        lambda seed: (),
        lambda seed: (image_clip(2 * side, side, seed),),
        lambda seed: (video_clip(4, side, 2 * side, seed=seed),),
        lambda seed: (video_clip(3, side, side, seed=seed), image_clip(side, side, seed), video_clip(6, side, side, seed=seed)),
    )
    return [live.prompt(kinds[number % 4](number), f"What is number {number}?") for number in range(count)]


@pytest.fixture(scope="module", params=FAMILIES)
def live(request):
    name = request.param
    dtype = "bfloat16" if name == "qwen3_5" else "float32"  # vLLM's recurrent layers on a CPU know no other
    family = load_class(resolve("models", name))(**({"past_time": True} if name in ("qwen2_vl", "qwen2_5_vl") else {}))
    processor = tiny_model(name)[1]
    config = RunConfig(
        model=ModelConfig(path=str(tiny_folder(name)), dtype=dtype),
        rollout=RolloutConfig(temperature=0.8, max_response_tokens=24),
        train=TrainConfig(lr=2e-3, groups_per_batch=16),
    )
    policy = Policy(family.load(str(tiny_folder(name))), family, processor, config, total_updates=60)
    with asyncio.Runner() as runner:
        engine = VllmEngine(dtype=dtype, **OPTIONS)
        runner.run(engine.start(str(tiny_folder(name)), family, processor, None))
        try:
            one = Live(name, engine, family, processor, policy, runner)
            _train(one)
            one.sync()
            yield one
        finally:
            runner.run(engine.close())


def _train(live, steps=40):
    """Supervised steps on one answer for each of the prompts, so that the policy is sure of what it says."""
    tokenizer = live.processor.tokenizer
    groups = []
    for number, prompt in enumerate(prompts_of(live, 16)):
        ids = tokenizer(f"number {number} is what it is, and {number * 7}", add_special_tokens=False)["input_ids"]
        response = Response(text="", token_ids=(*ids, tokenizer.eos_token_id), truncated=False, offline=True)
        groups.append(Group(prompt=prompt, responses=[response]))
    width = max(len(group.responses[0].token_ids) for group in groups)
    work = Credited(groups=groups, advantages=torch.ones(len(groups), width), trained=torch.ones(len(groups), dtype=torch.bool))
    algorithm = load_class(resolve("algorithms", "sft"))()
    for _ in range(steps):
        metrics = live.policy.update(algorithm, work)
    assert metrics["actor/pg_loss"] < 1.0


def test_logprobs_are_the_trainers(live):
    prompts = prompts_of(live, 12)
    drawn = live.ask(prompts, n=4, temperature=0.8, max_tokens=24)
    groups = [Group(prompt=prompt, responses=[sampled(one) for one in own]) for prompt, own in zip(prompts, drawn, strict=True)]
    trained = live.policy.logprobs(groups)
    flat = [one for own in drawn for one in own]
    apart = torch.cat(
        [(row[: len(one.token_ids)] - torch.tensor(one.logprobs)).abs() for row, one in zip(trained, flat, strict=True)]
    )
    print(f"{live.name}: mean {apart.mean():.2e} max {apart.max():.2e} of {len(apart)}")
    assert float(apart.mean()) <= (3e-2 if live.name == "qwen3_5" else 1e-3)
    assert live.name == "qwen3_5" or float(apart.max()) <= 1e-2
