"""JSON inside an answer: bare, fenced or in a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evr1_core.api.answers.text import unfenced

MAX_DEPTH = 16
_TOKEN = re.compile(r'[{}\[\]"]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PAIRS = {"}": "{", "]": "["}


def parse_json(text: str | None) -> Any:
    """The value of a text that is one JSON document, in a code fence or bare; None when it is none (or null).

    Of equal keys the first counts. NaN and infinities are read as such: callers check. Nesting is limited to 16.
    """
    if not text:
        return None
    return _loads(unfenced(text).strip())


def json_values(text: str) -> list[Any]:
    """The values of all outermost JSON objects and arrays in ``text``, in order; what does not parse is left out. Linear time."""
    values = (_loads(text[start:end]) for start, end in _regions(text))
    return [value for value in values if value is not None]


def _loads(text: str) -> Any:
    if _depth(text) > MAX_DEPTH:
        return None
    try:
        return json.loads(text, object_pairs_hook=_first_wins, parse_int=float)
    except ValueError:
        return None


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _TOKEN.finditer(text):  # brackets in strings count too: a bound is all that is needed
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    return deepest


def _regions(text: str) -> list[tuple[int, int]]:
    """Offsets of the outermost balanced brackets; brackets that are never closed are passed over."""
    stack: list[tuple[str, int]] = []
    regions: list[tuple[int, int]] = []
    for token, position in _brackets(text):
        if token in "{[":
            stack.append((token, position))
        elif stack and stack[-1][0] == _PAIRS[token]:
            start = stack.pop()[1]
            while regions and regions[-1][0] > start:
                regions.pop()
            regions.append((start, position + 1))
        else:
            stack.clear()
    return regions


def _brackets(text: str) -> Iterator[tuple[str, int]]:
    """Brackets outside of strings; a quote counts only inside brackets and when it is closed."""
    position, depth, quotes = 0, 0, True
    while (match := _TOKEN.search(text, position)) is not None:
        token, position = match.group(), match.end()
        if token != '"':
            depth = max(0, depth + (1 if token in "{[" else -1))
            yield token, match.start()
        elif depth and quotes:
            string = _STRING.match(text, match.start())
            quotes = string is not None
            position = string.end() if string else position
