"""The contract of model families catches what it is there to catch."""

from __future__ import annotations

import pytest
import torch
from attrs import evolve

from evr1_core.testing import check_model_family
from tests.tiny import tiny_model

OWN = type(tiny_model("qwen2_5_vl")[0])


def smaller(self, folder, *, seed=0, corpus=(), **sizes):
    OWN.tiny(self, folder, seed=seed, corpus=corpus, width=64, vision_width=64, **sizes)


def lose_a_token(self, processor, text, clips):
    encoded = OWN.encode(self, processor, text, clips)
    places = torch.nonzero(encoded.token_kind == 2).flatten()
    keep = torch.ones(len(encoded.input_ids), dtype=torch.bool)
    keep[places[:1]] = False
    return evolve(encoded, input_ids=encoded.input_ids[keep], token_kind=encoded.token_kind[keep])


def swap_media(self, processor, text, clips):
    encoded = OWN.encode(self, processor, text, clips)
    return evolve(encoded, media_kinds=encoded.media_kinds[::-1])


def see_padding(self, model, batch, vision):
    return OWN.forward(self, model, evolve(batch, attention_mask=batch.attention_mask | True), vision)


def see_the_whole_batch(self, model, batch, vision):
    hidden = OWN.forward(self, model, batch, vision)
    return hidden + hidden.mean(dim=(0, 1), keepdim=True) if len(hidden) > 1 else hidden


def forget(self, model, batch, vision):
    return OWN.forward(self, model, evolve(batch, position_ids=batch.position_ids - batch.position_ids.min()), vision)


BAD = {
    "a placeholder too few": ({"encode": lose_a_token}, "15 video placeholders and 16 video features"),
    "media in another order": ({"encode": swap_media}, "media in the order"),
    "a wrong length": ({"prompt_length": lambda self, processor, text, clips: 7}, "prompt_length is 7, the prompt has"),
    "padding seen": ({"forward": see_padding}, "beside others in a padded batch|behind a cache"),
    "other prompts seen": ({"forward": see_the_whole_batch}, "beside others in a padded batch"),
    "positions from 0 behind a cache": ({"forward": forget}, "behind a cache"),
    "nothing to shard": ({"shard_units": lambda self, model: []}, "shard_units is empty"),
    "nothing banned": ({"banned_ids": lambda self, processor: frozenset()}, "no banned ids"),
    "another type": ({"model_types": frozenset({"qwen9"})}, "is a 'qwen2_5_vl', the family serves"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_family_is_caught(name, tmp_path):
    changes, message = BAD[name]
    with pytest.raises(AssertionError, match=message):
        check_model_family(type("Bad", (OWN,), {"tiny": smaller, **changes})(), tmp_path / "tiny")
