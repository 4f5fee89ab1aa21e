"""Three-axis rotary positions (M-RoPE, arXiv:2409.12191) from token kinds and grids, without a model at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from attrs import frozen
from torch import Tensor

from evr1_core.api import TEXT, Encoded

PAST_TIME = (
    "text behind a video goes on behind its last step where that lies further than its longer side, as the paper and vLLM have it; "
    "off: behind its longer side, as Transformers has it"
)


@frozen
class Block:
    """A run of visual tokens: steps, rows and columns of tokens, and how far apart in position two steps are."""

    steps: int
    rows: int
    columns: int
    interval: float = 1.0


def whole_clips(encoded: Encoded, merge: int, tokens_per_second: float | None = None) -> list[Block]:
    """A block for each medium. With ``tokens_per_second``, steps of a video are as far apart as its seconds say."""
    seconds = iter(encoded.seconds_per_step)
    blocks = []
    for (steps, height, width), kind in _media(encoded):
        interval = tokens_per_second * next(seconds) if tokens_per_second and kind == "video" else 1.0
        blocks.append(Block(steps, height // merge, width // merge, interval))
    return blocks


def single_steps(encoded: Encoded, merge: int) -> list[Block]:
    """A block for each step of each medium: families that write the time between steps see every one by itself."""
    return [Block(1, height // merge, width // merge) for (steps, height, width), _ in _media(encoded) for _ in range(steps)]


def positions(token_kind: Tensor, blocks: Sequence[Block], *, past_time: bool = False) -> Tensor:
    """int64 ``[3, S]``: time, height, width.

    Text advances all axes by one. A visual block counts each axis from where it begins, time by its interval, rounded down. The
    text behind it goes on at the block's start plus its longer side, as Transformers has it; with ``past_time`` behind its largest
    position on any axis, as the paper and vLLM have it.
    """
    parts: list[Tensor] = []
    start = 0
    remaining = iter(blocks)
    for kind, length in runs(token_kind):
        if kind == TEXT:
            parts.append((torch.arange(length) + start).expand(3, -1))
            start += length
            continue
        block = next(remaining)
        times = (torch.arange(block.steps) * block.interval).long()  # in float32, as Transformers computes it
        axes = torch.meshgrid(times, torch.arange(block.rows), torch.arange(block.columns), indexing="ij")
        parts.append(torch.stack(axes).reshape(3, -1) + start)
        start += max(block.rows, block.columns, int(times[-1]) + 1 if past_time else 0)
    return torch.cat(parts, dim=1)


def runs(token_kind: Tensor) -> Iterator[tuple[int, int]]:
    """(kind, length) of each run of equal kinds, in order."""
    for kind, members in groupby(token_kind.tolist()):
        yield kind, sum(1 for _ in members)


def _media(encoded: Encoded) -> Iterator[tuple[list[int], str]]:
    if encoded.grid_thw is not None:
        yield from zip(encoded.grid_thw.tolist(), encoded.media_kinds, strict=True)
