"""The base class of reward plugins, and what goes in and comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import define, field, frozen

from evr1_core.api.answers import gold_text
from evr1_core.api.clips import BoxSpace
from evr1_core.api.samples import Sample


@frozen(kw_only=True)
class RewardInput:
    """One response against one record.

    ``answer`` is what the dispatcher extracted in strict mode; None: there is no answer. ``boxes`` is the space of the prediction's
    boxes; the gold's space is declared by the data.
    """

    sample: Sample
    response: str
    num_tokens: int = 0
    truncated: bool = False
    answer: str | None = None
    boxes: BoxSpace | None = None


@frozen(kw_only=True)
class RewardResult:
    """``accuracy`` in [0, 1], or None when a judge gave no verdict. ``parsed``: the prediction could be read. ``parts``: extra
    components, under the names that the reward declares. ``note`` says why, in a few words."""

    accuracy: float | None
    parsed: bool
    parts: Mapping[str, float] = field(factory=dict)
    note: str = ""


@define(kw_only=True)
class Reward(ABC):
    """Scores a response in [0, 1]. A plugin is an attrs class; its fields are its options.

    ``tasks`` lists the problem types it serves, in canonical form. A prediction that cannot be read scores 0 with ``parsed``
    False; a gold that cannot be read raises :class:`~evr1_core.api.BadGoldError`.
    """

    api: ClassVar[int]
    tasks: ClassVar[frozenset[str]]
    parts: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def score(self, item: RewardInput) -> RewardResult:
        """The accuracy of one response."""

    def score_batch(self, items: Sequence[RewardInput]) -> list[RewardResult]:
        """The accuracies of many; overridden where a batch is cheaper than a loop (a judge, a process pool)."""
        return [self.score(item) for item in items]

    def well_formed(self, sample: Sample, answer: str) -> bool:
        """Whether an answer ("" for none) has the form that the prompt asks for, such as JSON; part of the format reward."""
        return True

    def gold_answer(self, sample: Sample, boxes: BoxSpace | None) -> str:
        """The gold in the form and box space of a prediction: what preflight feeds back, and what must score 1."""
        return gold_text(sample)

    def close(self) -> None:
        """Lets go of processes and connections."""
