"""Spatial grounding: overlap of two boxes."""

from __future__ import annotations

import json

from attrs import define, field, validators

from evr1_core.api import BadGoldError, BoxSpace, Reward, RewardInput, RewardResult, Sample
from evr1_core.api.answers import Box, boxes, gold_text, one_box, parse_json
from evr1_core.api.metrics import iou_2d
from evr1_core.api.spaces import KINDS, converted
from evr1_plugins.rewards._spaces import GOLD_HELP, PREDICTION_HELP, box_spaces


@define(kw_only=True)
class SpatialIoU(Reward):
    """Intersection over union of two boxes [x1, y1, x2, y2], in [0, 1].

    Reads ``{"boxes": [...]}`` (or ``bbox``, ``bbox_2d``), a bare list, or four numbers in parentheses. Corners are put in order;
    a box without area, with a number missing or infinite, and several boxes that differ score 0. Nothing is clipped to the frame:
    a huge box earns its true overlap. Gold and prediction are compared in the gold's space after conversion.

    Raises BadGoldError when the gold is not one box with an area, or its space needs a frame size that is not known. Source:
    Pascal VOC (doi:10.1007/s11263-009-0275-4).
    """

    api = 1
    tasks = frozenset({"spatial grounding"})

    gold_space: str = field(default="pixel", validator=validators.in_(KINDS), metadata={"help": GOLD_HELP})
    prediction_space: str = field(default="", validator=validators.in_(("", *KINDS)), metadata={"help": PREDICTION_HELP})

    def score(self, item: RewardInput) -> RewardResult:
        gold = self._gold(item.sample)
        own, other = box_spaces(item.sample, item.boxes, self.gold_space, self.prediction_space)
        guesses = boxes(item.answer)
        if len(set(guesses)) != 1:
            return RewardResult(accuracy=0.0, parsed=False, note="several boxes" if guesses else "no box")
        return RewardResult(accuracy=iou_2d(converted(guesses[0], other, own), gold), parsed=True)

    def well_formed(self, sample: Sample, answer: str) -> bool:
        value = parse_json(answer) if answer.startswith("{") else None
        return isinstance(value, dict) and len(boxes(answer)) == 1

    def gold_answer(self, sample: Sample, boxes: BoxSpace | None) -> str:
        own, other = box_spaces(sample, boxes, self.gold_space, self.prediction_space)
        return json.dumps({"boxes": converted(self._gold(sample), own, other)})

    def _gold(self, sample: Sample) -> Box:
        gold = one_box(gold_text(sample))
        if gold is None or iou_2d(gold, gold) != 1.0:
            raise BadGoldError(sample, 'one box with an area, such as {"boxes": [10, 20, 30, 40]}')
        return gold
