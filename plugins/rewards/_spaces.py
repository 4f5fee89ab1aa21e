"""The box spaces of gold and prediction, as records, options and the model family declare them."""

from __future__ import annotations

from attrs import evolve

from evr1_core.api import BadGoldError, BoxSpace, Sample
from evr1_core.api.spaces import KINDS, convertible

GOLD_HELP = "space of the gold boxes where the record has no `box_space`: pixel (of the upright frame), norm1 or norm1000"
PREDICTION_HELP = (
    "space of the predicted boxes: pixel, resized, norm1 or norm1000; empty: that of the model family, else the gold's"
)


def box_spaces(sample: Sample, boxes: BoxSpace | None, gold: str, prediction: str) -> tuple[BoxSpace, BoxSpace]:
    """Spaces of gold and prediction. The record's `box_space`, `prediction_box_space`, `width` and `height` win over the options.

    Raises BadGoldError for an unknown space, and where a conversion needs a frame size that neither record nor media give.
    """
    known = boxes or BoxSpace(kind="pixel")
    width, height = sample.extra.get("width", known.width), sample.extra.get("height", known.height)
    if not all(isinstance(side, int | float) for side in (width, height)):
        raise BadGoldError(sample, f"in a frame of known size: width {width!r}, height {height!r}")
    gold_kind = sample.extra.get("box_space", gold)
    kind = sample.extra.get("prediction_box_space", prediction) or (boxes.kind if boxes else gold_kind)
    if gold_kind not in KINDS or kind not in KINDS:
        raise BadGoldError(sample, f"in a known box space ({', '.join(KINDS)}): {gold_kind!r}, prediction {kind!r}")
    frame = evolve(known, width=int(width), height=int(height))
    spaces = evolve(frame, kind=gold_kind), evolve(frame, kind=kind)
    if not convertible(*spaces):
        raise BadGoldError(sample, f"in a frame of known size (width, height), which {gold_kind} boxes need to meet {kind} ones")
    return spaces
