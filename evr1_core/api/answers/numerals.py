"""The number that an answer states."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain

from attrs import frozen

from evr1_core.api.answers.extraction import Mode
from evr1_core.api.answers.text import normalised

SLACK = 1e-9  # 2.02 and 2 differ by 0.02
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_WORDS = {**{name: index for index, name in enumerate(_SMALL)}, **_TENS}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
_TIMES = {"once": 1, "twice": 2, "thrice": 3, "none": 0}
_UNITS = "|".join(_SMALL[1:10])

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:[.,]\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?<![\w.,^/])(?P<sign>(?<![\d)\]%] )[+-](?=[\d.]))?(?:(?P<whole>\d{{1,9}}) (?P<part>\d{{1,9}}/\d{{1,9}})(?![\d/])"
    rf"|(?P<digits>{_DIGITS})(?:/(?P<below>\d+(?:\.\d+)?)|[eE](?P<e>[+-]?\d{{1,9}})"
    rf"|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?\^\s?[{{(]?(?P<power>[+-]?\d{{1,9}})[)}}]?)?)"
    rf"(?P<bad>[.,]?\d|[/^]|:\d)?(?P<percent>\s?\\?%|\s?per ?cent\b)?(?:\s?(?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_WORD = re.compile(
    rf"(?<![\w'’-])(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<unit>{_UNITS}))?"
    rf"|(?P<word>{'|'.join(sorted(_SMALL, key=len, reverse=True))}))"
    rf"(?P<percent> ?%| per ?cent\b)?(?: (?P<scale>{'|'.join(_SCALES)}))?(?![\w-])",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,40})\}\s?\{([^{}]{1,40})\}")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_VULGAR = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_UNIT_POWER = re.compile(r"(?<=[A-Za-z}])\s?\^\s?\{?[-+]?\d{1,9}\}?")
_MARKUP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|left|right|[,;:! ])|[$*`{}]|\\[()\[\]]")
_CONCLUSION = re.compile(r"(?:\b(?:answer|result|count|total)\b|答案)[^\n.]{0,40}?(?:\bis\b|[:：=]|是|为)", re.IGNORECASE)


@frozen
class Number:
    """A number as it was written: ``value`` without dividing a percentage by 100, and whether it had a percent sign."""

    value: float
    percent: bool = False


def number(text: str | None, *, mode: Mode = "strict") -> Number | None:
    """The number that ``text`` (an extracted answer) states; None without one, and in strict mode with several that differ.

    Reads signs, thousands separators, an unambiguous decimal comma, fractions, scientific notation, percentages, number words to
    twenty, tens and "hundred" to "billion"; units are dropped. A broken, infinite or overflowing number makes the whole text
    unreadable. Lenient: the last number, or the first when the text begins with one, of what follows the last conclusion phrase.
    """
    prepared = _prepared(text or "")
    if mode == "strict":
        return _only_one(prepared)
    found = _all(prepared)
    cues = list(_CONCLUSION.finditer(prepared))
    start = cues[-1].end() if cues and any(position >= cues[-1].end() for position, _ in found) else 0
    usable = [one for position, one in found if position >= start]
    if not usable:
        return None
    return usable[0] if _begins(prepared, start, found) else usable[-1]


def _only_one(prepared: str) -> Number | None:
    first: Number | None = None
    for match in chain(_NUMBER.finditer(prepared), _WORD.finditer(prepared)):
        one = _word_value(match) if match.re is _WORD else _value(match)
        if one is None or (first is not None and one != first):
            return None
        first = one
    return first


def _begins(prepared: str, start: int, found: list[tuple[int, Number | None]]) -> bool:
    first = next((position for position, _ in found if position >= start), None)
    return first is not None and not prepared[start:first].strip(" \n\t($€£¥~≈")


def count(text: str | None, *, mode: Mode = "strict") -> int | None:
    """The whole number that ``text`` states, "once", "twice" and "none" among the words; None for a fraction or no number."""
    found = number(text, mode=mode)
    if found is not None:
        return int(found.value) if found.value.is_integer() and not found.percent else None
    named = {_TIMES[word] for word in re.findall(r"[a-z]+", (text or "").lower()) if word in _TIMES}
    return named.pop() if len(named) == 1 and not numbers(text or "") else None


def numbers(text: str) -> list[tuple[int, Number | None]]:
    """All numbers of ``text`` by position (in the prepared text); None for one that cannot be read."""
    return _all(_prepared(text))


def _all(prepared: str) -> list[tuple[int, Number | None]]:
    found: list[tuple[int, Number | None]] = [(m.start(), _value(m)) for m in _NUMBER.finditer(prepared)]
    found += [(m.start(), _word_value(m)) for m in _WORD.finditer(prepared)]
    return sorted(found, key=lambda pair: pair[0])


def _prepared(text: str) -> str:
    """``text`` in NFKC with plain signs and fractions, without markup and the exponents of units."""
    text = _SUPERSCRIPT.sub(lambda m: "^" + unicodedata.normalize("NFKC", m.group()), _VULGAR.sub(" ", text))
    text = text.replace("\u202f", "").replace("\u2009", "").replace("\u00a0", " ")
    text = normalised(text).replace("⁄", "/")
    text = text.translate({0x2212: "-", 0x2010: "-", 0x2011: "-"})
    text = _FRACTION.sub(r" \1/\2", text)
    return _MARKUP.sub("", _UNIT_POWER.sub("", text))


def _value(match: re.Match[str]) -> Number | None:
    if match["bad"]:
        return None
    sign = -1.0 if match["sign"] == "-" else 1.0
    if match["whole"]:
        above, _, below = match["part"].partition("/")
        value = float(match["whole"]) + float(above) / float(below) if float(below) else math.inf
    else:
        value = float(f"{_digits(match['digits'])}e{match['e'] or match['power'] or 0}")
        if match["below"]:
            value = value / float(match["below"]) if float(match["below"]) else math.inf
    value *= sign * _SCALES.get((match["scale"] or "").lower(), 1.0)
    return Number(value, bool(match["percent"])) if math.isfinite(value) else None


def _digits(text: str) -> str:
    """The digits with a point as decimal mark and without thousands separators."""
    if "," in text and "." in text:  # the last of the two is the decimal mark
        thousands, decimal = (",", ".") if text.rfind(".") > text.rfind(",") else (".", ",")
        return text.replace(thousands, "").replace(decimal, ".")
    if "," in text:
        head, _, tail = text.partition(",")
        grouped = "," in tail or (len(tail) == 3 and head != "0")
        return text.replace(",", "" if grouped else ".")
    return text


def _word_value(match: re.Match[str]) -> Number:
    value = float(_TENS[match["tens"].lower()] if match["tens"] else _WORDS[match["word"].lower()])
    if match["unit"]:
        value += _WORDS[match["unit"].lower()]
    return Number(value * _SCALES.get((match["scale"] or "").lower(), 1.0), bool(match["percent"]))


def aligned(guess: Number, gold: Number) -> float:
    """The guess on the scale of the gold: a guess below 1 in size meets a gold in percent as a share; all else stays as written."""
    if gold.percent and not guess.percent and abs(guess.value) <= 1 < abs(gold.value):
        return guess.value * 100
    return guess.value


def same_number(guess: float, gold: float, tolerance: float | None = None) -> bool:
    """Whether both round to the same two decimals (half up), or differ by at most ``tolerance``."""
    if guess == gold or (tolerance is not None and abs(guess - gold) <= tolerance * (1 + SLACK)):
        return True
    return _two_decimals(guess) == _two_decimals(gold)


def _two_decimals(value: float) -> Decimal | float:
    if abs(value) >= 1e15:  # beyond the two decimals that a float holds
        return value
    return Decimal(repr(value)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
