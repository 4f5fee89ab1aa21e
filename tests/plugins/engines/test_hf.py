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

CLIPS = ("video", "text", "image", "both")


def clips_of(name, side):
    """Clips whose sides are multiples of ``side``."""
    return {
        "video": (video_clip(5, 2 * side, side),),
        "text": (),
        "image": (image_clip(2 * side, 2 * side),),
        "both": (image_clip(side, side), video_clip(2, 2 * side, 2 * side)),
    }[name]


FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5")


def prompt_of(name, family_name="qwen3_vl"):
    family, processor, _ = tiny_model(family_name)
    clips = clips_of(name, family.grid.factor)
    media = tuple(Media(kind=clip.kind, path=name) for clip in clips)
    sample = Sample(uid=name, task="t", problem="?", answer="A", media=media)
    return encode_prompt(family, processor, sample, Prompt(parts=(*media, "What is it?")), clips, 1000)


def request(name, family_name="qwen3_vl", **sampling):
    prompt = prompt_of(name, family_name)
    return Request(uid=name, text=prompt.text, clips=prompt.clips, sampling=Sampling(**sampling))


def generate(requests, family_name="qwen3_vl", **options):
    family, processor, module = tiny_model(family_name)
    engine = HuggingFaceEngine(**options)

    async def both():
        await engine.start(str(tiny_folder(family_name)), family, processor, module)
        return await engine.generate(requests)

    return asyncio.run(both())


@pytest.mark.parametrize("name", FAMILIES)
def test_logprobs_are_those_of_a_training_forward(name):
    """Prompts of unequal length and kind in one batch, responses that end at different steps."""
    family, processor, module = tiny_model(name)
    drawn = generate(
        [request(kind, name, n=4, temperature=0.9, max_tokens=24, seed=number) for number, kind in enumerate(CLIPS)], name
    )
    groups = [
        Group(prompt=prompt_of(kind, name), responses=[sampled(one) for one in own]) for kind, own in zip(CLIPS, drawn, strict=True)
    ]
    config = RunConfig(rollout=RolloutConfig(temperature=0.9, max_response_tokens=24))
    policy = Policy(module, family, processor, config, total_updates=1)
    trained = policy.logprobs(groups)
    flat = [rollout for own in drawn for rollout in own]
    assert len({len(rollout.token_ids) for rollout in flat}) > 1
    for ours, rollout in zip(trained, flat, strict=True):
        assert ours[: len(rollout.token_ids)].tolist() == pytest.approx(rollout.logprobs, abs=1e-4)
    backward = policy.logprobs(groups[::-1]).view(len(groups), 4, -1).flip(0)
    torch.testing.assert_close(trained.view(len(groups), 4, -1), backward, atol=1e-5, rtol=0)


def test_a_prompt_is_computed_once_for_all_its_responses(monkeypatch):
    family, _, _ = tiny_model()
    shapes, vision = [], []
    forward, look = type(family).forward, type(family).vision
    monkeypatch.setattr(
        type(family), "forward", lambda self, m, b, v: (shapes.append(tuple(b.input_ids.shape)), forward(self, m, b, v))[1]
    )
    monkeypatch.setattr(type(family), "vision", lambda self, m, p, g: (vision.append(len(g)), look(self, m, p, g))[1])
    generate([request("video", n=8, max_tokens=3, temperature=1.0, seed=0)])
    assert vision == [1]
    assert shapes[0] == (1, prompt_of("video").num_tokens)
    assert all(shape == (8, 1) for shape in shapes[1:])


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
