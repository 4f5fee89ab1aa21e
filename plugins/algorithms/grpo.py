"""Group relative policy optimisation."""

from __future__ import annotations

from attrs import define

from evr1_core.api import Advantages, ScoreBatch

from . import _options
from ._groups import compared, standardised
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class GRPO(ClippedLoss):
    """GRPO (arXiv:2402.03300): ``A = (R - mean) / (std + 1e-6)`` within the group, clipped surrogate with dual clip.

    std has ddof 1; a group without spread gets 0. The published video recipe (arXiv:2604.16893) clips at 0.2 below and 0.28 above
    (arXiv:2503.14476) and averages over tokens.
    """

    api = 1
    min_group = 2

    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, standardised, self.baseline_rows)
