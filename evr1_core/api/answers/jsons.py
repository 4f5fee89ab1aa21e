"""JSON inside an answer: bare, fenced or in a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.text import unfenced

MAX_DEPTH = 16
_TOKEN = re.compile(r'[{}\[\]"]')
_TOKEN_OR_COMMA = re.compile(r'[{}\[\]",]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PAIRS = {"}": "{", "]": "["}
_CLOSERS = {"{": "}", "[": "]"}


def parse_json(text: str | None) -> Any:
    """The value of a text that is one JSON document, in a code fence or bare; None when it is none (or null).

    Of equal keys the first counts. NaN and infinities are read as such: callers check. Nesting is limited to 16.
    """
    if not text:
        return None
    document = unfenced(text).strip()
    return None if _depth(document) > MAX_DEPTH else _loads(document)


def json_values(text: str, *, mode: Mode = "strict") -> list[Any]:
    """The values of all outermost JSON objects and arrays in ``text``, in order; what does not parse is left out. Linear time.

    Lenient: the last one may be cut off at the end of the text; it comes without its last, incomplete entry.
    """
    mended = _mended(text) if mode == "lenient" else None
    stop = mended[0] if mended else len(text)
    values = [_loads(text[start:end]) for start, end, depth in _regions(text) if start < stop and depth <= MAX_DEPTH]
    return [value for value in (*values, mended and mended[1]) if value is not None]


def _loads(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except ValueError:
        return None


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:  # in order, which counts where keys are numbers: "18" and "18.0" are one
        found.setdefault(key, value)
    return found


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
        elif stack and stack[-1][0] == _PAIRS.get(token):
            start, depth = stack.pop()[1], 0
            while regions and regions[-1][0] > start:
                depth = max(depth, regions.pop()[2])
            regions.append((start, position + 1, depth + 1))
        elif token != '"':
            stack.clear()
    return regions


def _mended(text: str) -> tuple[int, Any] | None:
    """Offset and value of an object or array that runs to the end of the text unclosed: complete entries, all brackets closed.

    An array of plain values that was cut off counts as an incomplete entry as a whole: the last number may lack digits.
    """
    stack: list[tuple[str, int]] = []
    cut, depth = 0, 0  # behind the last complete entry, and how many brackets are open there
    for token, position in _brackets(text, _TOKEN_OR_COMMA):
        if token in "{[":
            stack.append((token, position))
        elif token == '"':
            break
        elif token == ",":
            cut, depth = (position, len(stack)) if stack and stack[-1][0] == "{" else (cut, depth)
        elif stack and stack[-1][0] == _PAIRS[token]:
            stack.pop()
            cut, depth = position + 1, len(stack)
        else:
            stack.clear()
            depth = 0
    opened = stack[:depth]
    for outer in range(max(0, depth - MAX_DEPTH), depth):  # the outermost may be a bracket of the prose before
        closers = "".join(_CLOSERS[token] for token, _ in reversed(opened[outer:]))
        if (value := _loads(text[opened[outer][1] : cut] + closers)) is not None:
            return opened[outer][1], value
    return None


def _brackets(text: str, tokens: re.Pattern[str] = _TOKEN) -> Iterator[tuple[str, int]]:
    """Brackets (and commas) outside of strings, which count inside brackets; the quote of a string that is never closed."""
    position, depth, quotes = 0, 0, True
    search = tokens.search
    while (match := search(text, position)) is not None:
        token, position = match[0], match.end()
        if token == "{" or token == "[":
            depth += 1
            yield token, position - 1
        elif token == ",":
            yield token, position - 1
        elif token != '"':
            depth -= depth > 0
            yield token, position - 1
        elif depth and quotes:
            string = _STRING.match(text, position - 1)
            quotes = string is not None
            position = string.end() if string else position
            if not quotes:
                yield token, position - 1
