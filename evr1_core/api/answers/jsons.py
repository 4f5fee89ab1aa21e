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
    document = unfenced(text).strip()
    return None if _depth(document) > MAX_DEPTH else _loads(document)


def json_values(text: str) -> list[Any]:
    """The values of all outermost JSON objects and arrays in ``text``, in order; what does not parse is left out. Linear time."""
    values = (_loads(text[start:end]) for start, end, depth in _regions(text) if depth <= MAX_DEPTH)
    return [value for value in values if value is not None]


def _loads(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except ValueError:
        return None


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


_DECODER = json.JSONDecoder(object_pairs_hook=_first_wins, parse_int=float)  # made once: that costs more than most values


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _TOKEN.finditer(text):  # brackets in strings count too: a bound is all that is needed
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    return deepest


def _regions(text: str) -> list[tuple[int, int, int]]:
    """Offsets of the outermost balanced brackets, and how deep they nest; brackets that are never closed are passed over."""
    stack: list[tuple[str, int]] = []
    regions: list[tuple[int, int, int]] = []
    for token, position in _brackets(text):
        if token in "{[":
            stack.append((token, position))
        elif stack and stack[-1][0] == _PAIRS[token]:
            start, depth = stack.pop()[1], 0
            while regions and regions[-1][0] > start:
                depth = max(depth, regions.pop()[2])
            regions.append((start, position + 1, depth + 1))
        else:
            stack.clear()
    return regions


def _brackets(text: str) -> Iterator[tuple[str, int]]:
    """Brackets outside of strings; a quote counts only inside brackets and when it is closed."""
    position, depth, quotes = 0, 0, True
    search = _TOKEN.search
    while (match := search(text, position)) is not None:
        token, position = match[0], match.end()
        if token == "{" or token == "[":
            depth += 1
            yield token, position - 1
        elif token != '"':
            depth -= depth > 0
            yield token, position - 1
        elif depth and quotes:
            string = _STRING.match(text, position - 1)
            quotes = string is not None
            position = string.end() if string else position
