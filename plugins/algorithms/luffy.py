"""GRPO on groups that hold a stored trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.algorithms import Need

from . import _options
from ._groups import compared, standardised
from ._options import BaselineRows, OffMode
from ._policy import ClippedLoss


@define(kw_only=True)
class LUFFY(ClippedLoss):
    """LUFFY (arXiv:2504.14945): GRPO over the mixed group; stored trajectories learn by ``-A p / (p + off_gamma)``, unclipped.

    The published run also drops std, the clip of samples and the mean over tokens; here these are options of their own.
    """

    api = 1
    min_group = 2
    needs: ClassVar[frozenset[Need]] = frozenset({"offline"})
    presets: ClassVar[dict[str, Any]] = {"mix.enabled": True}

    off_mode: OffMode = _options.off_mode("luffy")
    baseline_rows: BaselineRows = _options.baseline_rows()

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, standardised, self.baseline_rows)

    def contradictions(self, config: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        if not config["mix"]["enabled"]:
            yield "mix.enabled", "luffy learns from groups that hold a stored trajectory; without them it is grpo"
