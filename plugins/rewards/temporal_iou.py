"""Temporal grounding: overlap of two spans of time."""

from __future__ import annotations

import json

from attrs import define, field

from evr1_core.api import BadGoldError, BoxSpace, Reward, RewardInput, RewardResult, Sample
from evr1_core.api.answers import Span, gold_text, parse_json, spans, time_of
from evr1_core.api.metrics import iou_1d, iou_1d_union


@define(kw_only=True)
class TemporalIoU(Reward):
    """Intersection over union of two spans in seconds, in [0, 1]: ``max(0, min(e) - max(s)) / (max(e) - min(s))``.

    Reads ``{"time": [s, e]}``, ``[s, e]``, "3.2 to 5.1 seconds", "00:03-00:05"; values count from the first shown frame. A
    reversed span is put in order; a single time, a negative, infinite or missing one, and several spans that differ are no
    answer. Of several gold spans the best counts; with ``union`` (or ``"union": true`` in the record) all of them together,
    against all predicted ones.

    Raises BadGoldError when the gold holds no usable span. Source: arXiv:1705.02101 (Charades-STA).
    """

    api = 1
    tasks = frozenset({"temporal grounding"})

    clock: bool = field(default=True, metadata={"help": "accept 00:03 beside seconds"})
    union: bool = field(default=False, metadata={"help": "take several gold spans as one answer, not as alternatives"})

    def score(self, item: RewardInput) -> RewardResult:
        golds = self._golds(item.sample)
        guesses = spans(item.answer, clock=self.clock)
        union = self._wants_union(item.sample)
        if not guesses or (len(set(guesses)) > 1 and not union):
            note = "several spans" if guesses else "no time span"
            return RewardResult(accuracy=0.0, parsed=False, note=note)
        note = ", ".join(f"{start:g} to {end:g} s" for start, end in guesses[:4])
        best = iou_1d_union(guesses, golds) if union else max(iou_1d(guesses[0], gold) for gold in golds)
        return RewardResult(accuracy=best, parsed=True, note=note)

    def well_formed(self, sample: Sample, answer: str) -> bool:
        value = parse_json(answer) if answer.startswith("{") else None
        found = time_of(value) if isinstance(value, dict) and "time" in value else []
        return len(found) == 1 or (len(found) > 1 and self._wants_union(sample))

    def gold_answer(self, sample: Sample, boxes: BoxSpace | None) -> str:
        golds = self._golds(sample)
        return json.dumps({"time": golds if self._wants_union(sample) else golds[0]})

    def _golds(self, sample: Sample) -> list[Span]:
        golds = spans(gold_text(sample))
        if not golds:
            raise BadGoldError(sample, 'a time span, such as {"time": [3.2, 5.1]}')
        return golds

    def _wants_union(self, sample: Sample) -> bool:
        return bool(sample.extra.get("union", self.union))
