"""Decoupled clip and dynamic sampling policy optimisation."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch

from . import _options
from ._groups import compared, standardised
from ._options import BaselineRows
from ._policy import ClippedLoss


@define(kw_only=True)
class DAPO(ClippedLoss):
    """DAPO (arXiv:2503.14476): ``A = (R - mean) / (std + 1e-6)``, a wider upper clip, the mean over tokens, dynamic sampling.

    Presets: groups whose accuracies are all equal are replaced by freshly sampled ones (``filter.dynamic``), and responses pay for
    the last fifth of the length limit (``reward.overlong_buffer``).
    """

    api = 1
    min_group = 2
    presets: ClassVar[dict[str, Any]] = {"filter.dynamic": True, "reward.overlong_buffer": 0.2}

    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, standardised, self.baseline_rows)
