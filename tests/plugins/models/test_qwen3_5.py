"""What is Qwen3.5's alone: layers with a recurrent state, which must know of padding."""

from __future__ import annotations

import torch

from evr1_core.api import ModelBatch
from tests.plugins.models.made_up import made_up


def last_hidden(made, rows, width, *, left, cache=None):
    """Hidden states behind the last tokens of some prompts, padded on one side."""

    def wide(values):
        gap = width - values.shape[-1]
        return torch.nn.functional.pad(values, (gap, 0) if left else (0, gap))

    valid = torch.stack([wide(torch.ones(len(row), dtype=torch.int8)) for row in rows]).bool()
    causal = torch.ones(width, width, dtype=torch.bool).tril() & valid[:, None]
    batch = ModelBatch(
        input_ids=torch.stack([wide(row) for row in rows]),
        position_ids=torch.stack([wide(torch.arange(len(row)).expand(3, -1)) for row in rows], dim=1),
        token_kind=torch.zeros(len(rows), width, dtype=torch.int8),
        attention_mask=(causal | torch.eye(width, dtype=torch.bool))[:, None],
        valid=valid,
        cache=cache,
    )
    with torch.no_grad():
        hidden = made.family.forward(made.module, batch, None)
    ends = torch.full((len(rows),), width - 1) if left else valid.sum(dim=1) - 1
    return hidden[torch.arange(len(rows)), ends]


def test_padding_on_either_side_changes_nothing():
    made = made_up("qwen3_5")
    rows = [made.encoded.input_ids, made.encoded.input_ids[3:20], made.encoded.input_ids[5:]]
    alone = torch.cat([last_hidden(made, [row], len(row), left=False) for row in rows])
    for left in (False, True):
        padded = last_hidden(made, rows, max(map(len, rows)) + 5, left=left)
        torch.testing.assert_close(padded, alone, atol=1e-4, rtol=0)


def test_a_state_behind_padding_on_the_left_can_be_continued():
    from transformers import DynamicCache

    made = made_up("qwen3_5")
    rows = [made.encoded.input_ids, made.encoded.input_ids[4:15]]
    more = torch.tensor([[300], [301]])
    alone = torch.cat(
        [last_hidden(made, [torch.cat([row, own])], len(row) + 1, left=False) for row, own in zip(rows, more, strict=True)]
    )
    width = max(map(len, rows))
    cache = DynamicCache(config=made.module.config.get_text_config())
    last_hidden(made, rows, width, left=True, cache=cache)
    lengths = torch.tensor([len(row) for row in rows])
    seen = torch.arange(width + 1) >= width - lengths[:, None]
    batch = ModelBatch(
        input_ids=more,
        position_ids=lengths.view(1, -1, 1).expand(3, -1, 1),
        token_kind=torch.zeros(2, 1, dtype=torch.int8),
        attention_mask=seen[:, None, None],
        cache=cache,
    )
    with torch.no_grad():
        torch.testing.assert_close(made.family.forward(made.module, batch, None)[:, 0], alone, atol=1e-4, rtol=0)


def test_prompts_are_not_shared():
    assert not made_up("qwen3_5").family.shared_prefix
