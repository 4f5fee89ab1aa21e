"""REINFORCE with a baseline from the other responses."""

from __future__ import annotations

import torch
from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, ScoreBatch

from . import _options
from ._groups import compared
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class RLOO(ClippedLoss):
    """RLOO (arXiv:2402.14740): ``A = R - mean of the others``, which is ``n / (n - 1) (R - mean)``."""

    api = 1
    min_group = 2

    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, less_the_others, self.baseline_rows)


def less_the_others(rewards: Tensor, counted: Tensor, lengths: Tensor) -> Tensor:
    """Each reward less the mean of the other counted ones; 0 where there is no other."""
    others = counted.sum() - counted.long()
    total = rewards[counted].sum() - rewards * counted
    return torch.where(others > 0, rewards - total / others.clamp(min=1), 0.0)
