"""GRPO without its two biases."""

from __future__ import annotations

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.tensors import Aggregation

from . import _options
from ._groups import centred, compared
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class DrGRPO(ClippedLoss):
    """Dr. GRPO (arXiv:2503.20783): ``A = R - mean`` within the group; sums over tokens are divided by the length limit.

    No division by std, which favours questions that are nearly solved or nearly hopeless, nor by a response's own length, which
    favours long wrong answers.
    """

    api = 1
    min_group = 2

    aggregation: Aggregation = _options.aggregation("seq-mean-token-sum-norm")
    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, centred, self.baseline_rows)
