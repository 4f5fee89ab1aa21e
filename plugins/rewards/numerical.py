"""Numbers: counts, quantities and estimates."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

from attrs import define, field, validators

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult, Sample
from evr1_core.api.answers import aligned, gold_text, number, same_number
from evr1_core.api.metrics import mean_relative_accuracy, relative_accuracy

Measure = Literal["mra", "relative"]
MEASURES = get_args(Measure)


@define(kw_only=True)
class Numerical(Reward):
    """1 when answer and gold round to the same two decimals, or differ by at most the tolerance, else 0; regression: a share in
    [0, 1].

    Reads one number with sign, thousands separators, an unambiguous decimal comma, percent, fraction, exponent, number words and
    a unit, which is dropped; several numbers that differ are no answer. A share meets a gold in percent (0.5 and 50%); nothing
    else is converted. Regression: mean relative accuracy, the share of thresholds t in {.50, .55, ..., .95} with ``|p - g| / |g|
    <= 1 - t`` (VSI-Bench, arXiv:2412.14171), or ``max(0, 1 - |p - g| / |g|)``; a gold of 0 wants an exact match.

    The record may set ``tolerance`` and ``regression`` (mra or relative). Raises BadGoldError when the gold is not one number.
    """

    api = 1
    tasks = frozenset({"numerical", "number", "counting", "regression"})

    tolerance: float = field(
        default=0.0, validator=validators.ge(0.0), metadata={"help": "largest difference that counts as equal"}
    )
    regression: Measure = field(
        default="mra",
        validator=validators.in_(MEASURES),
        metadata={"help": "measure of regression: mra, or relative (1 - relative error)"},
    )

    def score(self, item: RewardInput) -> RewardResult:
        sample = item.sample
        gold = number(gold_text(sample))
        if gold is None:
            raise BadGoldError(sample, "one number")
        tolerance, measure = self._tolerance(sample), self._measure(sample)
        guess = number(item.answer)
        if guess is None:
            return RewardResult(accuracy=0.0, parsed=False, note="no single number")
        value = aligned(guess, gold)
        if sample.task != "regression":
            accuracy = float(same_number(value, gold.value, tolerance))
        else:
            accuracy = mean_relative_accuracy(value, gold.value) if measure == "mra" else relative_accuracy(value, gold.value)
        return RewardResult(accuracy=accuracy, parsed=True, note=f"read {value:.12g}")

    def _tolerance(self, sample: Sample) -> float:
        value: Any = sample.extra.get("tolerance", self.tolerance)
        if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
            raise BadGoldError(sample, f"one number with a tolerance of 0 or more: tolerance is {value!r}")
        return float(value)

    def _measure(self, sample: Sample) -> str:
        value = sample.extra.get("regression", self.regression)
        if value not in MEASURES:
            raise BadGoldError(sample, f"to be compared by {' or '.join(MEASURES)}: regression is {value!r}")
        return str(value)
