"""Spatial-temporal grounding and tracking: overlap of spans of time and of boxes over time."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field, validators

from evr1_core.api import BadGoldError, BoxSpace, Reward, RewardInput, RewardResult, Sample
from evr1_core.api.answers import Tube, gold_text, parse_json, read_tube, time_of, tube
from evr1_core.api.metrics import iou_1d, iou_2d, viou
from evr1_core.api.spaces import KINDS, converted
from evr1_plugins.rewards._spaces import GOLD_HELP, PREDICTION_HELP, box_spaces

TRACKING = "tracking"


@define(kw_only=True)
class SpatialTemporalIoU(Reward):
    """``0.5 tIoU + 0.5 vIoU``, in [0, 1]; tracking: vIoU alone; a gold without boxes: tIoU alone.

    tIoU is the 1-D IoU of the spans; vIoU the sum of the box IoU over the frames that both name, divided by the number of frames
    in the union (arXiv:2001.06891). Keys compare as numbers (18, "18" and "18.0" are one). A predicted key inside the gold span
    that the gold does not annotate is ignored; a key with a broken box counts as a frame without overlap. The prediction is JSON,
    ``{"time": [s, e], "boxes": {"3": [x1, y1, x2, y2]}}``; without a usable span (tracking: without boxes), or with several that
    differ, it is no answer.

    Raises BadGoldError when the gold lacks a span (tracking: boxes), holds a broken box, or needs a frame size that is not known.
    """

    api = 1
    tasks = frozenset({"spatial temporal grounding", TRACKING})

    gold_space: str = field(default="pixel", validator=validators.in_(KINDS), metadata={"help": GOLD_HELP})
    prediction_space: str = field(default="", validator=validators.in_(("", *KINDS)), metadata={"help": PREDICTION_HELP})

    def score(self, item: RewardInput) -> RewardResult:
        tracking = item.sample.task == TRACKING
        gold = self._gold(item.sample)
        guess = read_tube(item.answer)
        if guess is None or (not guess.boxes if tracking else guess.span is None):
            return RewardResult(accuracy=0.0, parsed=False, note="no boxes" if tracking else "no single time span")
        overlap = self._viou(item, guess, gold) if gold.boxes else 0.0
        if tracking:
            return RewardResult(accuracy=overlap, parsed=True, note=f"vIoU {overlap:.3f}")
        time = iou_1d(guess.span, gold.span) if guess.span and gold.span else 0.0
        accuracy = 0.5 * time + 0.5 * overlap if gold.boxes else time
        return RewardResult(accuracy=accuracy, parsed=True, note=f"tIoU {time:.3f}, vIoU {overlap:.3f}")

    def _viou(self, item: RewardInput, guess: Tube, gold: Tube) -> float:
        own, other = box_spaces(item.sample, item.boxes, self.gold_space, self.prediction_space)
        first, last = gold.span or (min(gold.boxes), max(gold.boxes))
        counted = {
            second: None if found is None else converted(found, other, own)
            for second, found in guess.boxes.items()
            if second in gold.boxes or not first <= second <= last
        }
        return viou(counted, gold.boxes)

    def well_formed(self, sample: Sample, answer: str) -> bool:
        value = parse_json(answer) if answer.startswith("{") else None
        if not isinstance(value, dict):
            return False
        boxes = tube(value) if isinstance(value.get("boxes"), dict) else None
        placed = boxes is not None and None not in boxes.values()
        return placed and (sample.task == TRACKING or len(time_of(value.get("time"))) == 1)

    def gold_answer(self, sample: Sample, boxes: BoxSpace | None) -> str:
        gold = self._gold(sample)
        value: dict[str, Any] = {} if gold.span is None else {"time": gold.span}
        if gold.boxes:
            own, other = box_spaces(sample, boxes, self.gold_space, self.prediction_space)
            named = ((second, found) for second, found in gold.boxes.items() if found)
            value["boxes"] = {_key(second): converted(found, own, other) for second, found in named}
        return json.dumps(value)

    def _gold(self, sample: Sample) -> Tube:
        gold = read_tube(gold_text(sample))
        tracking = sample.task == TRACKING
        if gold is None or (not gold.boxes if tracking else gold.span is None):
            raise BadGoldError(sample, "boxes by second" if tracking else "a time span, with or without boxes by second")
        if any(found is None or iou_2d(found, found) != 1.0 for found in gold.boxes.values()):
            raise BadGoldError(sample, "made of boxes that each have an area")
        return gold


def _key(second: float) -> str:
    return str(int(second) if second.is_integer() else second)
