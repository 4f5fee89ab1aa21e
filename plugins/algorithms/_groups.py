"""Advantages of responses compared with the others to their prompt."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.tensors import by_group, deviation, scores_of, spread_over_tokens

from ._options import BaselineRows

EPSILON = 1e-6  # beside the standard deviation, in the scale of rewards
Credit = Callable[[Tensor, Tensor, Tensor], Tensor]
"""``(rewards, counted, lengths)`` of a group's n responses to their credits; statistics take those that are ``counted``."""


def compared(batch: ScoreBatch, credit: Credit, rows: BaselineRows) -> Advantages:
    """What ``credit`` gives each response within its group, on all its tokens."""
    return Advantages(values=spread_over_tokens(credits_of(batch, scores_of(batch), credit, rows), batch.mask))


def credits_of(batch: ScoreBatch, scores: Tensor, credit: Credit, rows: BaselineRows) -> Tensor:
    """``[B]``: what ``credit`` gives each response for its score."""

    def counting(rewards: Tensor, offline: Tensor, lengths: Tensor) -> Tensor:
        counted = ~offline if rows == "online" and not bool(offline.all()) else offline | True
        return credit(rewards, counted, lengths)

    return by_group(scores, batch.group_ids, batch.judged, counting, batch.offline, batch.mask.sum(dim=1))


def standardised(rewards: Tensor, counted: Tensor, lengths: Tensor) -> Tensor:
    """``(R - mean) / (std + 1e-6)``; std has ddof 1."""
    base = rewards[counted]
    return (rewards - base.mean()) / (deviation(base) + EPSILON)


def centred(rewards: Tensor, counted: Tensor, lengths: Tensor) -> Tensor:
    """``R - mean``."""
    return rewards - rewards[counted].mean()
