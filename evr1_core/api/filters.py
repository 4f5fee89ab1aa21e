"""Which groups and records are worth training on: those whose responses differ in accuracy."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from math import comb
from typing import Generic, TypeVar

from attrs import define, field

from evr1_core.api.errors import Evr1Error

SPREAD = 1e-6  # a group whose values differ by no more than this has no signal: its residue is rounding
Key = TypeVar("Key", bound=Hashable)


def differs(accuracies: Sequence[float | None], low: float | None = None, high: float | None = None) -> bool:
    """The group has spread, and its mean lies strictly between the given bounds. What was not judged (None) is left out."""
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    if not known or max(known) - min(known) <= SPREAD:
        return False
    mean = sum(known) / len(known)
    return (low is None or low < mean) and (high is None or mean < high)


@define(kw_only=True)
class DynamicFilter(Generic[Key]):
    """Collects groups whose accuracies differ until there are ``target`` of them (arXiv:2503.14476).

    Call ``add`` with each generated batch until ``done``. ``max_tries``: batches at most; 0 or less: no limit. Accuracies are
    unshaped: a group of wrong answers that differ in format or length alone teaches that alone.
    """

    target: int
    max_tries: int = 20
    low: float | None = None
    high: float | None = None
    tries: int = field(default=0, init=False)
    seen: int = field(default=0, init=False)
    _differing: list[Key] = field(factory=list, init=False)
    _others: list[Key] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if self.max_tries <= 0:
            warnings.warn(
                "filter.max_tries: without a limit, a step goes on for ever once the model gets everything right, or nothing",
                stacklevel=2,
            )

    def add(self, groups: Sequence[tuple[Key, Sequence[float | None]]]) -> None:
        """Takes the groups of one generated batch: key and accuracies of each."""
        self.tries += 1
        self.seen += len(groups)
        for key, accuracies in groups:
            (self._differing if differs(accuracies, self.low, self.high) else self._others).append(key)

    @property
    def done(self) -> bool:
        """There are enough groups, or the tries are used up."""
        return self.complete or 0 < self.max_tries <= self.tries

    @property
    def complete(self) -> bool:
        """There are enough groups that differ."""
        return len(self._differing) >= self.target

    @property
    def kept(self) -> list[Key]:
        """The first ``target`` groups that differ, in the order of their arrival."""
        return self._differing[: self.target]

    @property
    def surplus(self) -> int:
        """Groups that differ and are thrown away: at the next step they would be stale."""
        return max(0, len(self._differing) - self.target)

    @property
    def candidates(self) -> list[Key]:
        """``kept``, filled up to ``target`` with the first of the others: whatever batches come, no group beside these will be
        chosen."""
        return [*self.kept, *self._others[: self.target - len(self.kept)]]

    def chosen(self) -> list[Key]:
        """``candidates``, once no more batches come. The advantages of those that are not ``kept`` must be 0. Raises Evr1Error when
        no group differs."""
        if not self._differing:
            raise Evr1Error(
                f"dynamic sampling: none of {self.seen} groups in {self.tries} batches has responses of different accuracy; "
                "the task is too easy or too hard for the model, or rollout.n is too small (`evr1 filter` finds usable records)"
            )
        return self.candidates


def pass_rate(accuracies: Sequence[float], threshold: float = 0.5) -> float:
    """Share of the responses to a record that reach the threshold."""
    return sum(accuracy >= threshold for accuracy in accuracies) / len(accuracies)


def keeps(rate: float, low: float = 0.0, high: float = 1.0) -> bool:
    """A record of this pass rate is neither too hard nor too easy; the bounds are strict."""
    return low < rate < high


def pass_at_k(num: int, correct: int, k: int) -> float:
    """Chance that one of ``k`` responses, drawn from ``num`` of which ``correct`` are right, is right (arXiv:2107.03374)."""
    if not 0 < k <= num:
        raise ValueError(f"k must be in [1, {num}]; is {k}")
    return 1.0 if num - correct < k else 1.0 - comb(num - correct, k) / comb(num, k)
