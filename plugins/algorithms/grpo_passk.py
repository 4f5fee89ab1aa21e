"""GRPO for the best of k."""

from __future__ import annotations

import torch
from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.tensors import deviation

from . import _options
from ._groups import EPSILON, compared
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class GRPOPassK(ClippedLoss):
    """Pass@k (arXiv:2503.19595): only the best response learns, by its lead: ``A = (best - second) / (std + 1e-6)``.

    n responses are judged by their best, so k is ``rollout.n``. Where two are best, none made the difference, and all get 0.
    """

    api = 1
    min_group = 2

    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, lead_of_the_best, self.baseline_rows)


def lead_of_the_best(rewards: Tensor, counted: Tensor, lengths: Tensor) -> Tensor:
    """The lead over the second best, for the best of all; std is that of the counted ones."""
    (best, second), places = rewards.topk(2)
    lead = (best - second) / (deviation(rewards[counted]) + EPSILON)
    return torch.zeros_like(rewards).index_fill(0, places[:1], float(lead))
