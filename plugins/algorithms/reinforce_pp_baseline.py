"""REINFORCE++ with the mean of the group as baseline."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.tensors import Level, normalised, scores_of

from . import _options
from ._groups import centred, credits_of
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class ReinforcePlusPlusBaseline(ClippedLoss):
    """REINFORCE++-baseline (arXiv:2501.03262): ``A = whiten(R - mean of the group)`` over the batch.

    Where a KL penalty is on (``kl.place``), it is k2 and belongs in the loss.
    """

    api = 1
    min_group = 2
    presets: ClassVar[dict[str, Any]] = {"kl.kind": "k2"}

    level: Level = _options.level()
    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        credits = credits_of(batch, scores_of(batch), centred, self.baseline_rows)
        return Advantages(values=normalised(credits, batch.mask, self.level))
