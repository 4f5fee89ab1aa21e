"""Attention of responses behind prompts that are kept once: the two parts have their softmax apart and are joined by its sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import AttentionInterface
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

NAME = "evr1_prompts_once"  # in Transformers' table of attention functions
GROWTH = 32  # tokens that the store of responses has room for at first; it doubles


class Rows:
    """Which prompt each row answers: ``prompt`` int64 ``[R]``, ascending. ``seen`` bool ``[P, S]``: where prompts have tokens."""

    def __init__(self, counts: Sequence[int], seen: Tensor) -> None:
        self.seen = seen
        self._place(torch.repeat_interleave(torch.tensor(counts, device=seen.device)))

    def _place(self, prompt: Tensor) -> None:
        self.prompt = prompt
        counts = torch.bincount(prompt, minlength=len(self.seen))
        self.most = int(counts.max())
        first = counts.cumsum(0) - counts
        self._slots = prompt * self.most + torch.arange(len(prompt), device=prompt.device) - first[prompt]
        self._filled = len(prompt) == len(self.seen) * self.most
        self.hidden = None if bool(self.seen.all()) else ~self.seen[:, None, None, :]

    def keep(self, rows: Tensor) -> Tensor | None:
        """Drops rows; ``rows`` bool ``[R]``. Returns the prompts to keep, ``[P]``, once a quarter of them has no row left."""
        left, prompt = self.prompt[rows].unique(return_inverse=True)
        if 4 * len(left) > 3 * len(self.seen):
            self._place(self.prompt[rows])
            return None
        self.seen = self.seen[left]
        self._place(prompt)
        return left

    def gather(self, x: Tensor) -> Tensor:
        """``[R, ...]`` to ``[P, N, ...]``, N the most rows of a prompt; 0 where a prompt has fewer."""
        if not self._filled:
            x = x.new_zeros(len(self.seen) * self.most, *x.shape[1:]).index_copy_(0, self._slots, x)
        return x.view(-1, self.most, *x.shape[1:])

    def scatter(self, x: Tensor) -> Tensor:
        """``[P, N, ...]`` to ``[R, ...]``."""
        x = x.reshape(-1, *x.shape[2:])
        return x if self._filled else x[self._slots]


class PromptsOnce(CacheLayerMixin):
    """Keys and values of one layer: ``keys`` and ``values`` ``[P, H, S, D]`` of prompts, and those of responses, a row each."""

    is_sliding = False

    def __init__(self, prompts: DynamicLayer, rows: Rows) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values, self.rows = prompts.keys, prompts.values, rows
        self.is_initialized = True
        self._length = 0
        self._own: list[Tensor] = [each.new_zeros(len(rows.prompt), each.shape[1], 0, each.shape[3]) for each in self._prompts()]

    def _prompts(self) -> tuple[Tensor, Tensor]:
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing is left to do: the prompts are there."""

    def update(self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any) -> tuple[Any, Any]:
        """Adds one token a row. What goes on to the attention function is this layer, in place of keys and of values."""
        for number, new in enumerate((key_states, value_states)):
            if self._length == self._own[number].shape[2]:
                self._own[number] = pad(self._own[number], (0, 0, 0, max(GROWTH, self._length)))
            self._own[number][:, :, self._length] = new[:, :, 0]
        self._length += 1
        return self, self

    def get_seq_length(self) -> int:
        return self._prompts()[0].shape[2] + self._length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def keep(self, rows: Tensor, prompts: Tensor | None) -> None:
        """Drops rows, and prompts unless None."""
        self._own = [each[rows] for each in self._own]
        if prompts is not None:
            self.keys, self.values = (each[prompts] for each in self._prompts())

    def attend(self, query: Tensor, scale: float) -> Tensor:
        """``[R, 1, Q, D]`` for a query ``[R, Q, 1, D]``; Q is a multiple of the H heads of keys."""
        keys, values = self._prompts()
        own_keys, own_values = (each[:, :, : self._length] for each in self._own)
        grouped = query.view(len(query), keys.shape[1], -1, query.shape[-1]) * scale
        own = _part(grouped, own_keys, own_values, None)
        beside = self.rows.gather(grouped).transpose(1, 2)  # [P, H, N, Q/H, D]: all rows of a prompt are queries of one product
        prompt = _part(beside.flatten(2, 3), keys, values, self.rows.hidden)
        shape = (*beside.shape[:-1], -1)
        out, total, top = (self.rows.scatter(each.view(shape).transpose(1, 2)) for each in prompt)
        highest = torch.maximum(top, own[2])
        theirs, ours = (top - highest).exp(), (own[2] - highest).exp()
        out = (out * theirs + own[0] * ours) / (total * theirs + own[1] * ours)
        return out.to(query.dtype).reshape(len(query), 1, -1, query.shape[-1])


def _part(query: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(weighted sum of values ``[..., M, D]``, sum of weights ``[..., M, 1]``, score of weight 1 ``[..., M, 1]``), in float32."""
    scores = (query @ keys.transpose(-1, -2)).float()
    if hidden is not None:
        scores.masked_fill_(hidden, float("-inf"))
    top = scores.amax(dim=-1, keepdim=True)
    weights = (scores - top).exp_()
    return (weights.to(values.dtype) @ values).float(), weights.sum(dim=-1, keepdim=True), top


def _attend(
    module: nn.Module, query: Tensor, key: PromptsOnce, value: Any, attention_mask: Any, *, scaling: float, **_: Any
) -> tuple[Tensor, None]:
    return key.attend(query, scaling), None


AttentionInterface.register(NAME, _attend)
