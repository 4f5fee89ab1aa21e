"""Reads and scores answers, by task: what benchmarks share. An answer is text in one canonical form for each task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from statistics import fmean

from evr1_core.api.answers import (
    Mode,
    Tube,
    box,
    concluded,
    count,
    extract,
    folded,
    number,
    option_letter,
    parse_json,
    read_tube,
    same_number,
    span,
    time_of,
    truth,
    tube,
)
from evr1_core.api.clips import BoxSpace
from evr1_core.api.errors import DataError
from evr1_core.api.items import EvalItem, Scores
from evr1_core.api.metrics import iou_1d, iou_2d, mean_relative_accuracy, viou
from evr1_core.api.spaces import clamped, converted, convertible

THRESHOLDS = (0.3, 0.5, 0.7)


def read(item: EvalItem, response: str, mode: Mode) -> str | None:
    """The answer of a response to ``item``: a letter, a number, ``yes`` or ``no``, JSON with ``time`` and ``boxes``, or text."""
    if item.task == "open":
        return concluded(response) if mode == "lenient" else concluded(response, anchored=True) or extract(response)
    candidate = extract(response, mode=mode)
    if candidate is None or item.task == "caption_mc":
        return candidate or None
    if item.task == "mc":
        return option_letter(candidate, item.options, mode=mode)
    if item.task == "yesno":
        said = truth(candidate, mode=mode)
        return None if said is None else ("yes" if said else "no")
    if item.task == "count":
        counted = count(candidate, mode=mode)
        return None if counted is None else str(counted)
    if item.task in ("numeric", "regression"):
        found = number(candidate, mode=mode)
        return None if found is None else repr(found.value)
    return _grounding(item, candidate, mode)


def _grounding(item: EvalItem, candidate: str, mode: Mode) -> str | None:
    duration = math.inf if item.duration is None else item.duration
    if item.task == "tgrounding":
        named = span(candidate, mode=mode, duration=duration)
        return None if named is None else json.dumps({"time": named})
    guess = read_tube(candidate, mode=mode)
    if guess is None or guess.span is None:
        return None
    return tube_text(Tube((min(guess.span[0], duration), min(guess.span[1], duration)), guess.boxes))


def tube_text(value: Tube) -> str:
    """A tube as JSON: what models are asked to write."""
    boxes = {f"{second:g}": None if found is None else list(found) for second, found in value.boxes.items()}
    return json.dumps({"time": value.span, "boxes": boxes})


def rate(item: EvalItem, answer: str | None, boxes: BoxSpace | None) -> Scores:
    """What an answer of :func:`read` scores, each in [0, 1]; None scores 0 everywhere, with the same names.

    ``accuracy``; regression: ``mra``; tgrounding: ``iou`` and ``r1@.3``, ``r1@.5``, ``r1@.7``; stgrounding: see :func:`rate_tube`.
    Open items: 1 for the gold's own text or number; the rest is for a judge.
    """
    gold = item.gold
    if item.task == "regression":
        return {"mra": mean_relative_accuracy(float(answer), float(gold)) if answer else 0.0}  # type: ignore[arg-type]
    if item.task == "tgrounding":
        return rate_span(span_of(answer), gold)  # type: ignore[arg-type]
    if item.task == "stgrounding":
        return rate_tube(item, answer, boxes)
    if answer is None:
        return {"accuracy": 0.0}
    if item.task == "numeric":
        right = same_number(float(answer), float(gold))  # type: ignore[arg-type]
    elif item.task == "open":
        right = gold is not None and equal_at_once(answer, str(gold))
    else:
        right = item.task != "caption_mc" and answer == gold_answer(item, None)
    return {"accuracy": float(right)}


def rate_span(guess: tuple[float, float] | None, gold: tuple[float, float]) -> Scores:
    """``iou`` of two spans in seconds, and 1 or 0 for each threshold that it reaches (``>=``)."""
    overlap = iou_1d(guess, gold) if guess else 0.0
    return {"iou": overlap, **{f"r1@{least:g}": float(overlap >= least) for least in THRESHOLDS}}


def rate_tube(item: EvalItem, answer: str | None, boxes: BoxSpace | None) -> Scores:
    """``score`` (half ``tiou``, half ``miou``; tiou alone where the gold has no boxes), ``tiou``; where it has: ``miou`` (mean box
    overlap over the seconds that both name), ``viou`` (their sum over the seconds that either names), ``viou@.3``, ``.5``, ``.7``.

    Raises DataError when predicted boxes cannot be converted to pixels because no frame size is known.
    """
    gold = item.gold
    assert isinstance(gold, Tube)
    assert gold.span is not None
    guess = span_of(answer)
    time = iou_1d(guess, gold.span) if guess else 0.0
    if not gold.boxes:
        return {"score": time, "tiou": time}
    named = {second: found for second, found in (tube(parse_json(answer)) or {}).items()} if answer else {}
    placed = {second: None if found is None else in_pixels(item, found, boxes) for second, found in named.items()}
    common = [
        iou_2d(mine, theirs) if (mine := placed[second]) and theirs else 0.0
        for second, theirs in gold.boxes.items()
        if second in placed
    ]
    mean, volume = fmean(common) if common else 0.0, viou(placed, gold.boxes)
    over = {f"viou@{least:g}": float(volume >= least) for least in THRESHOLDS}
    return {"score": 0.5 * time + 0.5 * mean, "tiou": time, "miou": mean, "viou": volume, **over}


def in_pixels(
    item: EvalItem, found: tuple[float, float, float, float], space: BoxSpace | None
) -> tuple[float, float, float, float]:
    """A predicted box in pixels of the source, cut to the frame. ``space`` None: it is in pixels already."""
    pixels = pixel_space(item, space)
    if space is None:
        return clamped(found, pixels)
    if not convertible(space, pixels):
        raise DataError(
            [f"{item.origin}: record {item.uid!r}: boxes in {space.kind} need the size of the frame, which is not known"]
        )
    return clamped(converted(found, space, pixels), pixels)


def pixel_space(item: EvalItem, space: BoxSpace | None) -> BoxSpace:
    """Pixels of an item's source: its ``size``, else the size that ``space`` says."""
    width, height = item.size or ((space.width, space.height) if space else (0, 0))
    return BoxSpace(kind="pixel", width=width, height=height)


def span_of(answer: str | None) -> tuple[float, float] | None:
    """The span of an answer in the canonical form."""
    value = parse_json(answer)
    found = time_of(value.get("time")) if isinstance(value, Mapping) else []
    return found[0] if found else None


def equal_at_once(answer: str, gold: str) -> bool:
    """Whether no judge is needed: the same text after folding, or two pure numbers that are equal."""
    if folded(answer) == folded(gold):
        return True
    try:
        return same_number(float(folded(answer).replace(",", "")), float(folded(gold).replace(",", "")))
    except ValueError:
        return False


def gold_answer(item: EvalItem, boxes: BoxSpace | None) -> str | None:
    """The gold as a model would write it, boxes in its space; None where the benchmark has none in words."""
    gold = item.gold
    if gold is None or item.task == "caption_mc":
        return None
    if isinstance(gold, bool):
        return "yes" if gold else "no"
    if isinstance(gold, Tube):
        own = pixel_space(item, boxes)
        space = boxes or own
        placed = {second: found and box(converted(found, own, space)) for second, found in gold.boxes.items()}
        return tube_text(Tube(gold.span, placed))
    return json.dumps({"time": gold}) if isinstance(gold, tuple) else str(gold)
