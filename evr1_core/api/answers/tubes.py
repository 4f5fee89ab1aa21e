"""Boxes [x1, y1, x2, y2] and tubes of boxes in an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.jsons import json_values
from evr1_core.api.answers.text import plain
from evr1_core.api.answers.times import Span, spans, time_of

Box = tuple[float, float, float, float]
KEYS = ("boxes", "bbox", "bbox_2d", "box")
_PARENTHESES = re.compile(r"\(([^()\n]{7,120})\)")
_KEY = re.compile(r"\s*(?:(\d{1,3}):(\d{1,2})(?::(\d{1,2}))?|(\d{1,15}(?:\.\d{1,15})?)\s*s?)\s*", re.IGNORECASE)


def box(value: Any) -> Box | None:
    """A list of four finite numbers with corners in order; None for anything else."""
    if not isinstance(value, list | tuple) or len(value) != 4:
        return None
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in value):
        return None
    x1, y1, x2, y2 = map(float, value)
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def boxes(text: str | None, *, mode: Mode = "strict") -> list[Box]:
    """All boxes that ``text`` names: JSON under a known key or bare lists, else four numbers in parentheses. Empty when one of
    them is broken; lenient: without those.
    """
    if not text:
        return []
    values = [value for value in json_values(text, mode=mode) if isinstance(value, list) or any(key in value for key in KEYS)]
    if values:
        found = [one for value in values for one in _boxes(value)]
    else:
        parts = (m[1].split(",") for m in _PARENTHESES.finditer(plain(text)))
        found = [box([_float(part) for part in part_list]) for part_list in parts if len(part_list) == 4]
    return [] if mode == "strict" and any(one is None for one in found) else [one for one in found if one is not None]


def one_box(text: str | None, *, mode: Mode = "strict") -> Box | None:
    """The one box that ``text`` names. Strict: None when it names several that differ; lenient: the last."""
    found = boxes(text, mode=mode)
    if not found or (mode == "strict" and len(set(found)) > 1):
        return None
    return found[-1]


def _boxes(value: Any) -> list[Box | None]:
    if isinstance(value, dict):
        key = next((key for key in KEYS if key in value), None)
        return _boxes(value[key]) if key else [None]
    if isinstance(value, list) and value and any(isinstance(part, list | dict) for part in value):
        return [one for part in value for one in _boxes(part)]
    return [box(value)]


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def tube(value: Any, *, mode: Mode = "strict") -> dict[float, Box | None] | None:
    """Boxes by second out of a JSON value: ``{"boxes": {"3": [...]}}``, or a list of ``{"time": t, "bbox": [...]}``.

    Keys are numbers: 18, "18", "18.0", "18s" and "00:18" are one; of equal keys the first counts. A key whose box is broken maps
    to None. None when ``value`` holds no tube at all or a key is no time. Lenient: such a key is left out, and so is a last entry
    whose box is broken; keys are rounded to whole seconds, half up.
    """
    if isinstance(value, dict):
        value = next((value[key] for key in KEYS if key in value), None)
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(isinstance(part, dict) and "time" in part for part in value):
        pairs = [(part["time"], next((part[key] for key in KEYS if key in part), None)) for part in value]
    else:
        return None
    if mode == "lenient" and pairs and box(pairs[-1][1]) is None:
        pairs.pop()
    found: dict[float, Box | None] = {}
    for key, item in pairs:
        second = _second(key)
        if second is None and mode == "strict":
            return None
        if second is not None:
            found.setdefault(float(math.floor(second + 0.5)) if mode == "lenient" else second, box(item))
    return found


@frozen
class Tube:
    """A span of time, where there is one, and boxes by second; None is a second that was named without a usable box."""

    span: Span | None
    boxes: Mapping[float, Box | None]


def read_tube(text: str | None, *, mode: Mode = "strict") -> Tube | None:
    """The one tube that ``text`` names, as JSON; text without JSON may still name a span.

    Strict: None when it names several that differ. Lenient: the last one; JSON may be cut off, and its last entry is then left out.
    """
    found: list[Tube] = []
    for value in json_values(text or "", mode=mode):
        named = time_of(value, mode=mode) if isinstance(value, dict) else []
        boxes = tube(value, mode=mode)
        if named or boxes is not None:
            found.append(Tube(_one(named, mode), boxes or {}))
    if found:
        return found[-1] if mode == "lenient" or all(one == found[0] for one in found) else None
    only = _one(spans(text, mode=mode), mode)
    return None if only is None else Tube(only, {})


def _one(found: list[Span], mode: Mode) -> Span | None:
    return found[-1] if found and (mode == "lenient" or len(set(found)) == 1) else None


def _second(key: Any) -> float | None:
    if isinstance(key, int | float) and not isinstance(key, bool):
        return float(key) if math.isfinite(key) else None
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        return None
    if match[4]:
        return float(match[4])
    seconds = 0.0
    for part in match.group(1, 2, 3):
        seconds = seconds if part is None else seconds * 60 + float(part)
    return seconds
