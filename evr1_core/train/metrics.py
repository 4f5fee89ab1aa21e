"""Metrics of an update: numerators and denominators are summed over its parts and divided once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from evr1_core.api import LossResult
from evr1_core.train.ranks import ALONE, Ranks


class Sums:
    """Collects sums, ratios and maxima over the parts of a mini-batch. The mean of parts is never averaged again."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._numerators: dict[str, float] = {}
        self._denominators: dict[str, float] = {}
        self._maxima: dict[str, float] = {}

    def add(self, name: str, value: Tensor) -> None:
        """Part of a total, such as a loss that is already a share of the global mean."""
        self._totals[name] = self._totals.get(name, 0.0) + float(value)

    def ratio(self, name: str, numerator: Tensor, denominator: Tensor) -> None:
        """Part of a mean."""
        self._numerators[name] = self._numerators.get(name, 0.0) + float(numerator)
        self._denominators[name] = self._denominators.get(name, 0.0) + float(denominator)

    def largest(self, name: str, value: Tensor) -> None:
        """A candidate for a maximum."""
        self._maxima[name] = max(self._maxima.get(name, float("-inf")), float(value))

    def take(self, result: LossResult) -> None:
        """The metrics of a part's loss."""
        for name, value in result.sums.items():
            self.add(name, value)
        for name, (numerator, denominator) in result.metrics.items():
            self.ratio(name, numerator, denominator)
        for name, value in result.maxima.items():
            self.largest(name, value)

    def means(self, ranks: Ranks = ALONE) -> dict[str, float]:
        """All metrics, over the parts of all processes; a ratio over nothing is left out."""
        every = ranks.gather((self._totals, self._numerators, self._denominators, self._maxima))
        totals, numerators, denominators = (_merged(sum, [each[place] for each in every]) for place in range(3))
        ratios = {name: numerators[name] / count for name, count in denominators.items() if count}
        return totals | ratios | _merged(max, [each[3] for each in every])


def _merged(merge: Callable[[Iterable[float]], float], parts: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge(part[name] for part in parts if name in part) for name in names}


def spread(name: str, values: Tensor) -> dict[str, float]:
    """``name/mean``, ``name/max`` and ``name/min`` of a vector; nothing when it is empty."""
    if not len(values):
        return {}
    values = values.double() if values.dtype != torch.float64 else values
    return {f"{name}/mean": float(values.mean()), f"{name}/max": float(values.max()), f"{name}/min": float(values.min())}
