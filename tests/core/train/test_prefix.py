"""A prompt computed once for several responses, against separate rows and against the Transformers model itself."""

from __future__ import annotations

import copy

import pytest
import torch

from evr1_core.api import Media, Prompt, Sample
from evr1_core.config.schema import RolloutConfig, RunConfig, TrainConfig
from evr1_core.rollout.groups import Group, Response, encode_prompt
from evr1_core.train.policy import Credited, Policy
from evr1_plugins.algorithms.grpo import GRPO
from tests.tiny import image_clip, tiny_model, video_clip

TEMPERATURE = 0.8


def groups():
    family, processor, _ = tiny_model()
    media = {"video": Media(kind="video", path="v"), "image": Media(kind="image", path="i")}
    kinds = {"video": ["video"], "text": [], "mixed": ["image", "video"], "image": ["image"]}
    clips = {"video": video_clip(5, 64, 32), "image": image_clip(32, 64)}
    out = []
    for number, (name, own) in enumerate(kinds.items()):
        sample = Sample(uid=name, task="multiple choice", problem="?", answer="A", media=tuple(media[kind] for kind in own))
        prompt = Prompt(parts=(*sample.media, f"Question {number}?"))
        encoded = encode_prompt(family, processor, sample, prompt, [clips[kind] for kind in own], 1000)
        generator = torch.Generator().manual_seed(number)
        lengths = [3, 1, 5] if number else [4, 2]
        responses = [
            Response(text="", token_ids=tuple(torch.randint(8, 300, (n,), generator=generator).tolist()), truncated=False)
            for n in lengths
        ]
        out.append(Group(prompt=encoded, responses=responses))
    return out


def policy(**train):
    family, processor, module = tiny_model()
    config = RunConfig(train=TrainConfig(lr=1e-3, **train), rollout=RolloutConfig(temperature=TEMPERATURE, max_response_tokens=8))
    return Policy(copy.deepcopy(module), family, processor, config, total_updates=1)


def logprobs_by_the_model(group):
    """One full forward of the Transformers model for each response, as anyone would write it."""
    family, processor, module = tiny_model()
    prompt = group.prompt
    images = [clip.frames[0] for clip in prompt.clips if clip.meta is None]
    videos = [clip for clip in prompt.clips if clip.meta is not None]
    inputs = processor(
        text=[prompt.text],
        images=images or None,
        videos=[clip.frames for clip in videos] or None,
        video_metadata=[{"fps": 2.0, "frames_indices": list(clip.meta.indices), "total_num_frames": 5} for clip in videos] or None,
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
    )
    length = inputs["input_ids"].shape[1]
    rows = []
    for response in group.responses:
        own = dict(inputs)
        tail = torch.tensor([response.token_ids])
        own["input_ids"] = torch.cat([inputs["input_ids"], tail], dim=1)
        own["attention_mask"] = torch.ones_like(own["input_ids"])
        own["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], torch.zeros_like(tail)], dim=1)
        with torch.no_grad():
            logits = module(**own).logits[0, length - 1 : -1]
        logits[:, sorted(family.banned_ids(processor))] = float("-inf")
        rows.append(torch.log_softmax(logits / TEMPERATURE, dim=-1).gather(1, tail.T).squeeze(1))
    return rows


def test_logprobs_are_those_of_the_model_itself():
    every = groups()
    got = policy(groups_per_batch=3).logprobs(every)
    expected = [row for group in every for row in logprobs_by_the_model(group)]
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours[: len(theirs)], theirs, atol=1e-5, rtol=0)
        assert not ours[len(theirs) :].any()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_splitting_and_sharing_change_neither_loss_nor_gradient(size):
    every = groups()
    rows = sum(len(group.responses) for group in every)
    advantages = torch.randn(rows, 5, generator=torch.Generator().manual_seed(0))
    trained = torch.ones(rows, dtype=torch.bool)
    trained[3] = False
    results = []
    for options in ({"groups_per_batch": 4, "share_prefix": False}, {"groups_per_batch": size}):
        own = policy(**options)
        old = own.logprobs(every) - 0.1
        own.optimizer.step = dict  # the gradients stay where they are
        metrics = own.update(GRPO(), Credited(groups=every, advantages=advantages, trained=trained, old_logprobs=old))
        gradient = torch.cat([parameter.grad.flatten() for parameter in own.module.parameters() if parameter.grad is not None])
        results.append((metrics, gradient))
    (first, expected), (second, gradient) = results
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert second[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    torch.testing.assert_close(gradient, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)


def test_a_response_does_not_see_its_neighbour():
    every = groups()[:1]
    before = policy().logprobs(every)
    other = Response(text="", token_ids=(9, 9, 9, 9), truncated=False)
    changed = [Group(prompt=every[0].prompt, responses=[other, every[0].responses[1]])]
    assert torch.equal(policy().logprobs(changed)[1], before[1])


def test_nothing_changes_the_first_time():
    every = groups()
    own = policy()
    rows = sum(len(group.responses) for group in every)
    work = Credited(
        groups=every, advantages=torch.ones(rows, 5), trained=torch.ones(rows, dtype=torch.bool), old_logprobs=own.logprobs(every)
    )
    metrics = own.update(GRPO(), work)
    assert metrics["actor/ppo_kl"] == pytest.approx(0, abs=1e-5)
    assert metrics["actor/pg_clipfrac"] == 0
    assert metrics["actor/ratio_max"] == pytest.approx(1, abs=1e-5)
