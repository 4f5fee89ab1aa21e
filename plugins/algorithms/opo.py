"""On-policy optimisation with the baseline of least variance."""

from __future__ import annotations

from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, ScoreBatch

from . import _options
from ._groups import compared
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class OPO(ClippedLoss):
    """OPO (arXiv:2505.23585): ``A = R - sum(L R) / sum(L)`` within the group, the mean reward weighted by length."""

    api = 1
    min_group = 2

    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, less_the_weighted_mean, self.baseline_rows)


def less_the_weighted_mean(rewards: Tensor, counted: Tensor, lengths: Tensor) -> Tensor:
    """Each reward less the mean over the tokens of the counted responses."""
    weights = lengths * counted
    return rewards - (weights * rewards).sum() / weights.sum().clamp(min=1)
