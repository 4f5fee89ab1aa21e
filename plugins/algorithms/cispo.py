"""Clipped importance sampling policy optimisation."""

from __future__ import annotations

from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, LossBatch, ScoreBatch
from evr1_core.api.tensors import at_least_float32, cispo_losses

from . import _options
from ._groups import compared, standardised
from ._options import BaselineRows
from ._policy import PolicyLoss, Surrogate


@define(kw_only=True)
class CISPO(PolicyLoss):
    """CISPO (arXiv:2506.13585): GRPO's advantage; ``-clip(r) A log p`` with no gradient through the clipped ratio.

    Every token keeps its gradient, also one whose ratio is clipped.
    """

    api = 1
    min_group = 2

    clip_low: float | None = _options.clip_low(None, "lower clip of the ratio: 1 - clip_low; null: none")
    clip_high: float = _options.clip_high()
    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, standardised, self.baseline_rows)

    def surrogate(self, batch: LossBatch, log_ratio: Tensor) -> Surrogate:
        losses, clipped, none = cispo_losses(
            at_least_float32(batch.logprobs), log_ratio, batch.advantages, low=self.clip_low, high=self.clip_high
        )
        bounds = (0.0 if self.clip_low is None else 1 - self.clip_low, 1 + self.clip_high)
        return Surrogate(losses=losses, ratio=log_ratio.detach().exp(), bounds=bounds, clipped=clipped, dual_clipped=none)
