"""Prompts that are too long are found before a run, without a pixel, and refused or left out."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import Clip, DataError, Media, Sample
from evr1_core.config.schema import RolloutConfig
from evr1_core.data.prompts import PromptTemplates
from evr1_core.rollout.lengths import find_long, long_metrics, without_long
from evr1_core.rollout.prompts import PromptEncoder
from tests.tiny import image_clip, tiny_model, video_clip

FRAMES = {"short.mp4": 2, "middle.mp4": 5, "long.mp4": 12}


class Films:
    """Films by name; pixels are refused unless they are asked for."""

    def clip(self, media):
        return image_clip(32, 64) if media.kind == "image" else video_clip(FRAMES[media.path], 64, 96)

    def outline(self, media):
        clip = self.clip(media)
        return Clip(frames=torch.empty_like(clip.frames, device="meta"), meta=clip.meta)


def sample(name, *media):
    kinds = {"mp4": "video", "png": "image"}
    own = tuple(Media(kind=kinds[path.rpartition(".")[2]], path=path) for path in media)
    problem = "".join(f"<{each.kind}>" for each in own) + "Which?"
    return Sample(uid=name, task="mcq", problem=problem, answer="A", media=own, origin=f"a.jsonl:{len(name)}")


SAMPLES = [
    sample("t"),
    sample("ss", "short.mp4"),
    sample("mmm", "middle.mp4"),
    sample("llll", "long.mp4"),
    sample("mixed", "p.png", "middle.mp4", "q.png", "short.mp4"),
]


def encoder(name="qwen3_vl", limit=10_000):
    family, processor, _ = tiny_model(name)
    return PromptEncoder(
        family=family, processor=processor, templates=PromptTemplates("", "think"), clips=Films(), max_tokens=limit
    )


@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl"])
def test_lengths_are_those_of_the_encoded_prompts(name, monkeypatch):
    if name == "qwen2_5_vl":
        monkeypatch.setattr(Films, "clip", lambda self, media: video_clip(FRAMES.get(media.path, 2), 56, 84))
        samples = SAMPLES[:4]
    else:
        samples = SAMPLES
    own = encoder(name)
    assert [own.length(each) for each in samples] == [each.num_tokens for each in own.encode(samples)]


def test_long_ones_are_refused_or_left_out_and_counted():
    own = encoder()
    longest, middle = own.length(SAMPLES[3]), own.length(SAMPLES[2])
    long = find_long(SAMPLES, encoder(limit=middle))
    assert [each.uid for each in long] == ["llll", "mixed"]
    with pytest.raises(DataError) as caught:
        without_long(SAMPLES, long, RolloutConfig(max_prompt_tokens=middle))
    assert caught.value.problems[0] == f"a.jsonl:4: record 'llll': the prompt has {longest} tokens"
    assert f"2 prompts are longer than rollout.max_prompt_tokens = {middle}" in caught.value.problems[-1]
    kept = without_long(SAMPLES, long, RolloutConfig(on_long_prompt="skip"))
    assert [each.uid for each in kept] == ["t", "ss", "mmm"]
    assert long_metrics(SAMPLES, long) == {"data/long_prompts": 2.0, "data/long_prompts_share": 0.4}
    assert without_long(SAMPLES, [], RolloutConfig()) == SAMPLES
