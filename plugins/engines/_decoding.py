"""Decoding behind prompts that are computed once: the states that rows of responses go on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicLayer, LinearAttentionLayer

from evr1_core.api import ModelBatch, ModelFamily
from evr1_plugins.engines._attention import NAME, PromptsOnce, Rows
from evr1_plugins.engines._prefill import Prefilled


class Decoding(Protocol):
    """Responses being written. Rows are those that have not ended, in the order of their prompts."""

    def keep(self, rows: Tensor) -> None:
        """Drops the rows that have ended; ``rows`` bool ``[R]``."""

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        """Hidden states ``[R, D]`` after one more token in each row."""


@contextmanager
def decoding(module: Any, prompts: Prefilled, counts: Sequence[int]) -> Iterator[Decoding]:
    """``counts`` responses behind each prompt. While they are written, the model attends by a function of ours where it can:
    where Transformers may choose how it attends, and every layer keeps all keys or a state of fixed size."""
    simple = all(type(layer) in (DynamicLayer, LinearAttentionLayer) for layer in prompts.cache.layers)
    text = module.config.get_text_config()
    before = text._attn_implementation
    if simple:
        _attend_by(module, NAME)
    try:
        yield (Shared if text._attn_implementation == NAME else Forked)(prompts, counts)
    finally:
        if simple:
            _attend_by(module, before)


def _attend_by(module: Any, name: str) -> None:
    module.set_attn_implementation({"text_config": name} if "text_config" in module.config.sub_configs else name)


class Shared:
    """A row a response. Keys and values of a prompt are kept and read once, however many responses it has; states of fixed size,
    which recurrent layers keep, are copied for each."""

    def __init__(self, prompts: Prefilled, counts: Sequence[int]) -> None:
        self._rows = Rows(counts, prompts.seen)
        self._cache = prompts.cache
        for number, layer in enumerate(self._cache.layers):
            if isinstance(layer, DynamicLayer):
                self._cache.layers[number] = PromptsOnce(layer, self._rows)
            else:
                layer.reorder_cache(self._rows.prompt)
        self._following = prompts.following[self._rows.prompt]

    def keep(self, rows: Tensor) -> None:
        prompts = self._rows.keep(rows)
        kept = torch.nonzero(rows).squeeze(1)
        for layer in self._cache.layers:
            if isinstance(layer, PromptsOnce):
                layer.keep(rows, prompts)
            else:
                layer.reorder_cache(kept)
        self._following = self._following[rows]

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        hidden = family.forward(module, _next(tokens, self._following, self._cache, None), None)[:, -1]
        self._following = self._following + 1
        return hidden


class Forked:
    """A row a response, each with a copy of all that its prompt left, for models whose attention cannot be replaced."""

    def __init__(self, prompts: Prefilled, counts: Sequence[int]) -> None:
        prompt = torch.repeat_interleave(torch.tensor(counts, device=prompts.hidden.device))
        self._cache = prompts.cache
        self._cache.reorder_cache(prompt)
        self._seen, self._following = prompts.seen[prompt], prompts.following[prompt]

    def keep(self, rows: Tensor) -> None:
        self._cache.reorder_cache(torch.nonzero(rows).squeeze(1))
        self._seen, self._following = self._seen[rows], self._following[rows]

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        self._seen = torch.cat([self._seen, self._seen.new_ones(len(tokens), 1)], dim=1)
        hidden = family.forward(module, _next(tokens, self._following, self._cache, self._seen[:, None, None, :]), None)[:, -1]
        self._following = self._following + 1
        return hidden


def _next(tokens: Tensor, following: Tensor, cache: Any, mask: Tensor | None) -> ModelBatch:
    return ModelBatch(
        input_ids=tokens.unsqueeze(1),
        position_ids=following.view(1, -1, 1).expand(3, -1, 1),
        token_kind=torch.zeros(len(tokens), 1, dtype=torch.int8, device=tokens.device),
        attention_mask=mask,
        cache=cache,
    )
