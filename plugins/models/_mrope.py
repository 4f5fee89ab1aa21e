"""Three-axis rotary positions (M-RoPE, arXiv:2409.12191) from token kinds and grids, without a model at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from evr1_core.api import IMAGE, TEXT, Kind


def runs(token_kind: Tensor) -> Iterator[tuple[int, int]]:
    """(kind, length) of each run of equal kinds, in order."""
    for kind, members in groupby(token_kind.tolist()):
        yield kind, sum(1 for _ in members)


def per_frame(grid_thw: Tensor, kinds: Sequence[Kind]) -> list[tuple[int, int, int]]:
    """Grids with each video cut into its temporal steps: families that write the time between frames see every step by itself."""
    frames: list[tuple[int, int, int]] = []
    for (steps, height, width), kind in zip(grid_thw.tolist(), kinds, strict=True):
        frames += [(1, height, width)] * steps if kind == "video" else [(steps, height, width)]
    return frames


def positions(token_kind: Tensor, grids: Sequence[tuple[int, int, int]], merge: int) -> Tensor:
    """int64 ``[3, S]``: time, height, width.

    Text advances all axes by one. A visual block of grid (t, h, w) counts each axis from where it begins; the text behind it goes
    on at the block's start plus its longest side.
    """
    blocks: list[Tensor] = []
    start = 0
    remaining = iter(grids)
    for kind, length in runs(token_kind):
        if kind == TEXT:
            blocks.append((torch.arange(length) + start).expand(3, -1))
            start += length
            continue
        steps, height, width = next(remaining)
        height, width = height // merge, width // merge
        axes = torch.meshgrid(torch.arange(steps), torch.arange(height), torch.arange(width), indexing="ij")
        blocks.append(torch.stack(axes).reshape(3, -1) + start)
        start += max(height, width) if kind == IMAGE else max(steps, height, width)
    return torch.cat(blocks, dim=1)
