"""Credit from comparing the responses to one prompt."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from evr1_core.api.tensors.reductions import at_least_float32

SPREAD = 1e-6  # a group whose values differ by no more than this has no signal: its residue is rounding


def by_group(scores: Tensor, group_ids: Tensor, counted: Tensor, credit: Callable[..., Tensor], *along: Tensor) -> Tensor:
    """``credit`` applied to the scores of each group, in float64 and in place of the rows; rows not ``counted`` (bool ``[B]``) take
    no part and get 0. A group of one row, or without spread, gets 0: in low precision its residue is noise that a division would
    blow up. ``credit`` also gets the group's part of each tensor ``[B]`` in ``along``."""
    credits = torch.zeros_like(scores, dtype=torch.float64)
    for group in torch.unique(group_ids):
        rows = torch.nonzero((group_ids == group) & counted).squeeze(1)
        values = scores[rows].double()
        if len(rows) >= 2 and values.max() - values.min() > SPREAD:
            credits[rows] = credit(values, *(each[rows] for each in along))
    return credits.to(at_least_float32(scores).dtype)
