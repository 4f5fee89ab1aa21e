"""Decoding behind prompts that are computed once: the states that rows of responses go on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from attrs import define
from torch import Tensor, nn

from evr1_core.api import Encoded, ModelBatch, ModelFamily

PROMPT, NOBODY = -1, -2  # owners of keys beside the places of responses


class Decoding(Protocol):
    """Responses being written. Rows are those that have not ended, in the order of their prompts."""

    def keep(self, rows: Tensor) -> None:
        """Drops the rows that have ended; ``rows`` bool ``[R]``."""

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        """Hidden states ``[R, D]`` after one more token in each row."""


@define
class Prefilled:
    """Prompts as the model left them. ``hidden`` ``[B, D]`` behind each, ``following`` ``[B]`` the next position, ``seen`` bool
    ``[B, S]`` where it has tokens, ``cache`` with a row a prompt."""

    hidden: Tensor
    cache: Any
    seen: Tensor
    following: Tensor


def prefill(family: ModelFamily, module: nn.Module, encoded: Sequence[Encoded], cache: Any) -> Prefilled:
    """One pass over all prompts. Padding stands on the left: a recurrent state must end with the prompt's last token."""
    device = next(module.parameters()).device
    length = max(len(item.input_ids) for item in encoded)
    positions = [family.position_ids(item) for item in encoded]
    seen = torch.stack([_padded(torch.ones_like(item.input_ids, dtype=torch.bool), length) for item in encoded]).to(device)
    triangle = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=device)  # padding sees itself, so that no row of the softmax is empty
    batch = ModelBatch(
        input_ids=torch.stack([_padded(item.input_ids, length) for item in encoded]).to(device),
        position_ids=torch.stack([_padded(position, length) for position in positions], dim=1).to(device),
        token_kind=torch.stack([_padded(item.token_kind, length) for item in encoded]).to(device),
        attention_mask=((triangle & seen[:, None, :]) | itself)[:, None],
        cache=cache,
        valid=seen,
    )
    hidden = family.forward(module, batch, _vision(family, module, encoded, device))
    following = torch.stack([position.max() + 1 for position in positions]).to(device)
    return Prefilled(hidden=hidden[:, -1], cache=cache, seen=seen, following=following)


def _vision(family: ModelFamily, module: nn.Module, encoded: Sequence[Encoded], device: torch.device) -> Any:
    patches = [item.patches for item in encoded if item.patches is not None]
    if not patches:
        return None
    grids = [item.grid_thw for item in encoded if item.grid_thw is not None]
    return family.vision(module, torch.cat(patches).to(device), torch.cat(grids).to(device))


def _padded(x: Tensor, length: int) -> Tensor:
    return nn.functional.pad(x, (length - x.shape[-1], 0))


class Shared:
    """All responses of a prompt in one row, as in training: a step adds one token of each, and each sees the prompt and its own.

    Keys and values of a prompt are stored and read once, however many responses it has.
    """

    def __init__(self, prompts: Prefilled, rows: Sequence[int]) -> None:
        device = prompts.hidden.device
        self._cache, self._following = prompts.cache, prompts.following
        self._owner = torch.where(prompts.seen, PROMPT, NOBODY)
        self._prompt = torch.repeat_interleave(torch.tensor(rows, device=device))
        self._place = torch.cat([torch.arange(count, device=device) for count in rows])

    def keep(self, rows: Tensor) -> None:
        self._prompt, self._place = self._prompt[rows], self._place[rows]
        left, prompt = self._prompt.unique(return_inverse=True)
        if len(left) < len(self._owner):
            self._cache.reorder_cache(left)
            self._prompt, self._owner, self._following = prompt, self._owner[left], self._following[left]

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        counts = torch.bincount(self._prompt, minlength=len(self._owner))
        used = torch.arange(int(counts.max()), device=tokens.device) < counts.unsqueeze(1)
        places = torch.full(used.shape, NOBODY, device=tokens.device).masked_scatter(used, self._place)
        self._owner = torch.cat([self._owner, places], dim=1)
        visible = (self._owner[:, None, :] == PROMPT) | (self._owner[:, None, :] == places[:, :, None])
        batch = ModelBatch(
            input_ids=torch.zeros_like(places).masked_scatter(used, tokens),
            position_ids=self._following.view(1, -1, 1).expand(3, -1, used.shape[1]),
            token_kind=torch.zeros(used.shape, dtype=torch.int8, device=tokens.device),
            attention_mask=visible[:, None],
            cache=self._cache,
            valid=used,
        )
        self._following = self._following + 1
        return family.forward(module, batch, None)[used]


class Forked:
    """A row a response, each with a copy of its prompt's state: for families whose state cannot be shared."""

    def __init__(self, prompts: Prefilled, rows: Sequence[int]) -> None:
        device = prompts.hidden.device
        prompt = torch.repeat_interleave(torch.tensor(rows, device=device))
        self._cache = prompts.cache
        self._cache.reorder_cache(prompt)
        self._seen, self._following = prompts.seen[prompt], prompts.following[prompt]

    def keep(self, rows: Tensor) -> None:
        self._cache.reorder_cache(torch.nonzero(rows).squeeze(1))
        self._seen, self._following = self._seen[rows], self._following[rows]

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        self._seen = torch.cat([self._seen, self._seen.new_ones(len(tokens), 1)], dim=1)
        batch = ModelBatch(
            input_ids=tokens.unsqueeze(1),
            position_ids=self._following.view(1, -1, 1).expand(3, -1, 1),
            token_kind=torch.zeros(len(tokens), 1, dtype=torch.int8, device=tokens.device),
            attention_mask=self._seen[:, None, None, :],
            cache=self._cache,
        )
        self._following = self._following + 1
        return family.forward(module, batch, None)[:, -1]
