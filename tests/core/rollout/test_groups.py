"""What is checked of a prompt before anything runs, and of responses when they come back."""

from __future__ import annotations

import re

import pytest
import torch
from attrs import evolve

from evr1_core.api import Media, ModelError, Prompt, Rollout, Sample
from evr1_core.rollout.groups import check_sampled, encode_prompt
from tests.tiny import image_clip, tiny_model, video_clip

SAMPLE = Sample(uid="films/7", task="mcq", problem="?", answer="A", origin="films.jsonl:8")
PROMPT = Prompt(parts=(Media(kind="video", path="v"), Media(kind="image", path="i"), "Which?"))
CLIPS = (video_clip(4, 64, 64), image_clip(32, 64))


def encode(family, prompt=PROMPT, clips=CLIPS, limit=1000):
    return encode_prompt(family, tiny_model()[1], SAMPLE, prompt, clips, limit)


def family_that(change):
    """Qwen3-VL whose encoder errs."""
    family, _, _ = tiny_model()

    class Erring(type(family)):
        def encode(self, processor, text, clips):
            return change(super().encode(processor, text, clips))

    return Erring()


def test_a_missing_placeholder_is_said_with_record_counts_and_grid():
    def lose_one(encoded):
        kinds = encoded.token_kind.clone()
        kinds[torch.nonzero(kinds == 2)[0]] = 0
        return evolve(encoded, token_kind=kinds)

    message = "films.jsonl:8: record 'films/7': 7 video placeholders and 8 video features (grids [(2, 4, 4)])"
    with pytest.raises(ModelError, match=re.escape(message)):
        encode(family_that(lose_one))


def test_an_image_taken_for_a_video_is_said():
    def swap(encoded):
        return evolve(encoded, token_kind=torch.where(encoded.token_kind == 1, 2, encoded.token_kind).to(torch.int8))

    with pytest.raises(ModelError, match=re.escape("0 image placeholders and 2 image features (grids [(1, 2, 4)])")):
        encode(family_that(swap))


def test_a_processor_that_resizes_is_said():
    def halve(encoded):
        return evolve(encoded, grid_thw=encoded.grid_thw // torch.tensor([1, 2, 1]))

    message = "record 'films/7': the processor has cut the media into grids [(2, 2, 4), (1, 1, 4)], the cache has sized them for"
    with pytest.raises(ModelError, match=re.escape(message)):
        encode(family_that(halve))


def test_a_placeholder_among_the_words_is_said_with_the_record():
    prompt = Prompt(parts=(*PROMPT.parts, "<|image_pad|>"))
    with pytest.raises(ModelError, match=re.escape("films.jsonl:8: record 'films/7': the text of the prompt holds <|image_pad|>")):
        encode(tiny_model()[0], prompt)


def test_nothing_is_cut_off_a_prompt_that_is_too_long():
    length = encode(tiny_model()[0]).num_tokens
    assert encode(tiny_model()[0], limit=length).num_tokens == length
    with pytest.raises(ModelError, match=f"has {length} tokens, more than rollout.max_prompt_tokens = {length - 1}"):
        encode(tiny_model()[0], limit=length - 1)


@pytest.mark.parametrize("token", ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>"])
def test_a_sampled_placeholder_is_said_with_record_count_and_grid(token):
    family, processor, _ = tiny_model()
    prompt = encode(family)
    bad = processor.tokenizer.convert_tokens_to_ids(token)
    good = Rollout(text="a", token_ids=(300, 301), logprobs=None, finish="stop")
    check_sampled(prompt, [good])
    with pytest.raises(
        ModelError, match=re.escape(f"films.jsonl:8: record 'films/7': the engine has sampled 2 tokens of [{bad}]")
    ) as e:
        check_sampled(prompt, [good, evolve(good, token_ids=(300, bad, bad))])
    assert "[[2, 4, 4], [1, 2, 4]]" in str(e.value)
