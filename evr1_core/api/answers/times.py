"""Time spans in an answer: seconds from the first shown frame."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.jsons import json_values
from evr1_core.api.answers.text import plain

Span = tuple[float, float]
KEYS = ("time", "timestamp", "timestamps", "time_span", "span", "segment")
BOUNDS = (("start", "end"), ("start_time", "end_time"))

_SECONDS = r"(?:seconds?|secs?|s|秒)(?![A-Za-z])"
_MINUTES = r"(?:minutes?|mins?|min|m|分钟|分)(?![A-Za-z])"
_OTHER_UNIT = r"(?! ?(?:hours?|hrs?|h|minutes?|mins?|min|m|ms|milliseconds?|frames?|%)(?![A-Za-z]))"


def _time(name: str) -> str:
    return (
        rf"(?:(?P<{name}_clock>\d{{1,3}}:\d{{1,2}}(?::\d{{1,2}})?(?:\.\d{{1,9}})?)(?![\d:])(?: ?{_SECONDS})?"
        rf"|(?P<{name}_minutes>\d{{1,9}}(?:\.\d{{1,9}})?) ?{_MINUTES}"
        rf"(?: (?:and ))?(?: ?(?P<{name}_rest>\d{{1,9}}(?:\.\d{{1,9}})?) ?{_SECONDS})?"
        rf"|(?P<{name}_seconds>-?(?:\d{{1,15}}(?:\.\d{{1,15}})?|\.\d{{1,15}}))(?![\d:])"
        rf"(?: ?(?P<{name}_unit>{_SECONDS})|{_OTHER_UNIT}))"
    )


_BARE = r"(?<![\w.:])"
_TO = r" ?(?:-{1,3}>?|–|—|~|→|until|till|through|to|到|至) ?(?:about |around |approximately )?"
_RANGE = re.compile(rf"{_BARE}{_time('a')}{_TO}{_time('b')}", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween (?:about |around )?{_time('a')} and (?:about |around )?{_time('b')}", re.IGNORECASE)
_STARTS = re.compile(
    rf"\b(?:starts?|starting|begins?|beginning|start time|from)\b[^\d\n]{{0,24}}?{_BARE}{_time('a')}[^\d\n]{{0,40}}?"
    rf"\b(?:ends?|ending|stops?|finish(?:es)?|end time)\b[^\d\n]{{0,24}}?{_BARE}{_time('b')}",
    re.IGNORECASE,
)
_PAIR = re.compile(r"[(\[]([^()\[\],\n]{1,64}),([^()\[\],\n]{1,64})[)\]]")
_VALUE = re.compile(_time("a"), re.IGNORECASE)


def spans(text: str | None, *, clock: bool = True, mode: Mode = "strict") -> list[Span]:
    """The time spans that ``text`` names, in order of appearance, each (start, end) with start <= end, finite and not negative.

    JSON (keys ``time``, ``timestamp``, ``start`` and ``end``, or bare lists) comes first, then pairs in parentheses, then phrases
    such as "3.2 to 5.1 seconds" or "00:03-00:05". Empty when there is none, or when one of them cannot be used; lenient: without
    those, and JSON may be cut off. ``clock`` False: values with colons are not read.
    """
    if not text:
        return []
    values = [value for value in json_values(text, mode=mode) if _looks_timed(value)]
    if values:
        return _usable([pair for value in values for pair in _pairs(value, clock)], mode)
    line = plain(text)
    pairs = [(_seconds(m[1], clock), _seconds(m[2], clock)) for m in _PAIR.finditer(line)]
    pairs = [pair for pair in pairs if pair != (None, None)] or _phrases(line, clock)
    return _usable(pairs, mode)


def span(text: str | None, *, mode: Mode = "strict", clock: bool = True, duration: float = math.inf) -> Span | None:
    """The one span that ``text`` names. Strict: None when it names several that differ; lenient: the last, clamped to [0,
    ``duration``].
    """
    found = spans(text, clock=clock, mode=mode)
    if not found or (mode == "strict" and len(set(found)) > 1):
        return None
    start, end = found[-1]
    return (min(start, duration), min(end, duration)) if mode == "lenient" else found[-1]


def time_of(value: Any, *, mode: Mode = "strict") -> list[Span]:
    """The spans of a parsed JSON value, as :func:`spans` reads them."""
    return _usable(_pairs(value, True), mode)


def _usable(pairs: Sequence[tuple[float | None, float | None]], mode: Mode) -> list[Span]:
    """Spans in order; strict: none at all when one is broken or negative; lenient: those that are not broken, from 0 on."""
    found: list[Span] = []
    for start, end in pairs:
        if start is None or end is None or not (math.isfinite(start) and math.isfinite(end)):
            if mode == "strict":
                return []
            continue
        first, last = min(start, end), max(start, end)
        if mode == "strict" and first < 0:
            return []
        found.append((max(0.0, first), max(0.0, last)))
    return found


def _looks_timed(value: Any) -> bool:
    if isinstance(value, dict):
        return not value.keys().isdisjoint(KEYS) or any(start in value and end in value for start, end in BOUNDS)
    return isinstance(value, list) and bool(value)


def _pairs(value: Any, clock: bool) -> list[tuple[float | None, float | None]]:
    """(start, end) of every span in a JSON value; (None, None) for a part that is none."""
    if isinstance(value, dict):
        for start, end in BOUNDS:
            if start in value and end in value:
                return [(_seconds(value[start], clock), _seconds(value[end], clock))]
        for key in KEYS:
            if key in value:
                return _pairs(value[key], clock)
    if isinstance(value, str):
        return _phrases(plain(value), clock) or [(None, None)]
    if not isinstance(value, list) or not value:
        return [(None, None)]
    if any(isinstance(part, list | dict) for part in value):
        return [pair for part in value for pair in _pairs(part, clock)]
    return [(_seconds(value[0], clock), _seconds(value[1], clock))] if len(value) == 2 else [(None, None)]


def _seconds(value: Any, clock: bool) -> float | None:
    """One point in time, from a JSON number or text; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    match = _VALUE.fullmatch(unicodedata.normalize("NFKC", value).strip(" \"'"))
    return _read(match, "a", clock) if match else None


def _phrases(line: str, clock: bool) -> list[tuple[float | None, float | None]]:
    matches = sorted(
        (m for pattern in (_RANGE, _BETWEEN, _STARTS) for m in pattern.finditer(line)), key=lambda m: (m.start(), -m.end())
    )
    found: list[tuple[float | None, float | None]] = []
    end = 0
    for match in matches:
        if match.start() < end:
            continue
        end = match.end()
        start_time, end_time = _read(match, "a", clock), _read(match, "b", clock)
        if match["b_minutes"] and match["a_seconds"] and not match["a_unit"] and start_time is not None:
            start_time *= 60  # "1 to 2 minutes"
        found.append((start_time, end_time))
    return found


def _read(match: re.Match[str], name: str, clock: bool) -> float | None:
    if match[f"{name}_clock"]:
        if not clock:
            return None
        seconds = 0.0
        for part in match[f"{name}_clock"].split(":"):
            seconds = seconds * 60 + float(part)
        return seconds
    if match[f"{name}_minutes"]:
        return float(match[f"{name}_minutes"]) * 60 + float(match[f"{name}_rest"] or 0)
    return float(match[f"{name}_seconds"])
