"""GRPO of each reward component by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, Evr1Error, ScoreBatch
from evr1_core.api.algorithms import Need
from evr1_core.api.tensors import Level, normalised

from . import _options
from ._groups import credits_of, standardised
from ._options import BaselineRows, option
from ._policy import ClippedLoss


@define(kw_only=True)
class GDPO(ClippedLoss):
    """GDPO (arXiv:2601.05242): ``A = whiten(sum of w_k GRPO(R_k))``; each component is standardised in its group, so none drowns.

    The weights of ``reward`` do not matter here: ``weights`` names the components and says what each counts.
    """

    api = 1
    min_group = 2
    needs: ClassVar[frozenset[Need]] = frozenset({"components"})

    weights: Mapping[str, float] = option({"accuracy": 1.0, "format": 1.0}, "components and their weights")
    level: Level = _options.level()
    baseline_rows: BaselineRows = _options.baseline_rows()

    @weights.validator
    def _some_component(self, _: object, value: Mapping[str, float]) -> None:
        if not value or not any(value.values()) or not all(math.isfinite(weight) for weight in value.values()):
            raise ValueError(f"weights must name components with finite weights, one of them not 0; is {dict(value)}")

    def advantages(self, batch: ScoreBatch) -> Advantages:
        credits = [w * credits_of(batch, _component(batch, k), standardised, self.baseline_rows) for k, w in self.weights.items()]
        return Advantages(values=normalised(torch.stack(credits).sum(dim=0), batch.mask, self.level))

    def contradictions(self, config: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        if config["kl"]["place"] == "reward":
            yield "kl.place", "gdpo compares raw components, so a penalty on the reward would be lost; use loss"
        if config["reward"]["overlong_buffer"] and "overlong" not in self.weights:
            yield "reward.overlong_buffer", "gdpo would ignore the penalty: name `overlong` in algorithm.options.weights"


def _component(batch: ScoreBatch, name: str) -> Tensor:
    values = batch.components.get(name)
    if values is None:
        raise Evr1Error(f"gdpo: no reward component {name!r}; there are {', '.join(sorted(batch.components)) or 'none'}")
    missing = int((values.isnan() & batch.judged).sum())
    if missing:
        raise Evr1Error(f"gdpo: {missing} of {len(values)} responses have no reward component {name!r}")
    return values
