"""Credit from comparing the responses to one prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from evr1_core.api.filters import SPREAD
from evr1_core.api.tensors.reductions import at_least_float32, outcome, spread_over_tokens, whiten

if TYPE_CHECKING:
    from evr1_core.api.algorithms import ScoreBatch

Level = Literal["seq", "token"]
LEVELS: tuple[Level, ...] = ("seq", "token")


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


def scores_of(batch: ScoreBatch) -> Tensor:
    """``[B]``: what each response earned, a KL penalty taken off. A response without tokens has nowhere to put a reward: it keeps
    its score in the statistics of its group."""
    return torch.where(batch.mask.any(dim=1), outcome(batch.token_rewards, batch.mask), batch.rewards)


def deviation(values: Tensor) -> Tensor:
    """Standard deviation (ddof 1) of a vector; 1 where it has no spread. A scalar."""
    spread = len(values) >= 2 and values.max() - values.min() > SPREAD
    return values.std() if spread else values.new_ones(())


def normalised(credits: Tensor, mask: Tensor, level: Level) -> Tensor:
    """``[B, T]``: one credit for each response ``[B]``, whitened over the batch and put on all its tokens.

    ``seq``: every response with tokens counts once, so that a group without signal stays at 0 when credits have mean 0. ``token``:
    it counts as often as it has tokens; long responses weigh more, and the mean shifts.
    """
    if level == "token":
        return whiten(spread_over_tokens(credits, mask), mask)
    return spread_over_tokens(whiten(credits, mask.any(dim=1)), mask)
