"""Rollouts from the live model: log-probabilities, ends, seeds, greedy decoding."""

from __future__ import annotations

import asyncio

import pytest
import torch

from evr1_core.api import Media, Prompt, Request, Sample, Sampling
from evr1_core.config.schema import RolloutConfig, RunConfig
from evr1_core.rollout.groups import Group, encode_prompt, sampled
from evr1_core.train.policy import Policy
from evr1_plugins.engines._sampling import truncate
from evr1_plugins.engines.hf import HuggingFaceEngine
from tests.tiny import image_clip, tiny_folder, tiny_model, video_clip

CLIPS = {
    "video": (video_clip(5, 64, 32),),
    "text": (),
    "image": (image_clip(64, 64),),
    "both": (image_clip(32, 32), video_clip(2, 64, 64)),
}


def prompt_of(name):
    family, processor, _ = tiny_model()
    clips = CLIPS[name]
    media = tuple(Media(kind=clip.kind, path=name) for clip in clips)
    sample = Sample(uid=name, task="t", problem="?", answer="A", media=media)
    return encode_prompt(family, processor, sample, Prompt(parts=(*media, "What is it?")), clips, 1000)


def request(name, **sampling):
    prompt = prompt_of(name)
    return Request(uid=name, text=prompt.text, clips=prompt.clips, sampling=Sampling(**sampling))


def generate(requests, **options):
    family, processor, module = tiny_model()
    engine = HuggingFaceEngine(**options)

    async def both():
        await engine.start(str(tiny_folder()), family, processor, module)
        return await engine.generate(requests)

    return asyncio.run(both())


def test_logprobs_are_those_of_a_training_forward():
    names = list(CLIPS)
    rollouts = generate([request(name, n=4, temperature=0.9, max_tokens=12, seed=number) for number, name in enumerate(names)])
    groups = [
        Group(prompt=prompt_of(name), responses=[sampled(one) for one in own]) for name, own in zip(names, rollouts, strict=True)
    ]
    family, processor, module = tiny_model()
    config = RunConfig(rollout=RolloutConfig(temperature=0.9, max_response_tokens=12))
    trained = Policy(module, family, processor, config, total_updates=1).logprobs(groups)
    flat = [rollout for own in rollouts for rollout in own]
    for ours, rollout in zip(trained, flat, strict=True):
        assert ours[: len(rollout.token_ids)].tolist() == pytest.approx(rollout.logprobs, abs=1e-4)


def test_greedy_is_what_transformers_generates():
    _, processor, module = tiny_model()
    prompt = prompt_of("video")
    clip = prompt.clips[0]
    inputs = processor(
        text=[prompt.text],
        videos=[clip.frames],
        video_metadata=[{"fps": 2.0, "frames_indices": list(clip.meta.indices), "total_num_frames": 5}],
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
    )
    banned = [[token] for token in sorted(tiny_model()[0].banned_ids(processor))]
    theirs = module.generate(**inputs, do_sample=False, max_new_tokens=10, bad_words_ids=banned)[0, inputs["input_ids"].shape[1] :]
    ours = generate([request("video", temperature=0.0, max_tokens=10)])[0][0]
    assert list(ours.token_ids) == theirs.tolist()[: len(ours.token_ids)]


def test_draws_do_not_depend_on_the_company():
    alone = generate([request("video", n=3, max_tokens=8, seed=5)])
    among = generate(
        [request("text", n=2, max_tokens=5, seed=1), request("video", n=3, max_tokens=8, seed=5), request("both", seed=2)]
    )
    one_by_one = generate(
        [request("text", n=2, max_tokens=5, seed=1), request("video", n=3, max_tokens=8, seed=5)], prompts_per_batch=1
    )
    tokens = [rollout.token_ids for rollout in alone[0]]
    assert [rollout.token_ids for rollout in among[1]] == tokens
    assert [rollout.token_ids for rollout in one_by_one[1]] == tokens
    assert len(set(tokens)) == 3  # streams of their own


def test_ends_and_limits():
    _, processor, module = tiny_model()
    rollouts = [rollout for own in generate([request("text", n=64, temperature=5.0, max_tokens=60, seed=3)]) for rollout in own]
    ends = module.generation_config.eos_token_id
    stopped = [rollout for rollout in rollouts if rollout.finish == "stop"]
    assert stopped
    assert all(rollout.token_ids[-1] in ends and not set(ends) & set(rollout.token_ids[:-1]) for rollout in stopped)
    assert all(len(rollout.token_ids) == 60 for rollout in rollouts if rollout.finish == "length")
    banned = tiny_model()[0].banned_ids(processor)
    assert not banned & {token for rollout in rollouts for token in rollout.token_ids}
    assert all("<|im_end|>" not in rollout.text for rollout in stopped)


def test_truncation_keeps_the_smallest_sufficient_set():
    logprobs = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    assert truncate(logprobs, 2, 1.0).exp().tolist() == pytest.approx([0.625, 0.375, 0, 0])
    assert truncate(logprobs, -1, 0.8).exp().tolist() == pytest.approx([0.625, 0.375, 0, 0])
    assert truncate(logprobs, -1, 0.81).exp().tolist() == pytest.approx([0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0])
