"""The number that an answer states."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_HALF_UP, Decimal

from attrs import frozen

from evr1_core.api.answers.extraction import Mode

SLACK = 1e-9  # 2.02 and 2 differ by 0.02
_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_WORDS = {**{name: index for index, name in enumerate(_SMALL)}, **_TENS}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
_UNITS = "|".join(_SMALL[1:10])

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:[.,]\d+)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?<![\w.,^/])(?P<sign>(?<![\d)\]%] )[+-](?=[\d.]))?(?:(?P<whole>\d{{1,9}}) (?P<part>\d{{1,9}}/\d{{1,9}})(?![\d/])"
    rf"|(?P<digits>{_DIGITS})(?:/(?P<below>\d+(?:\.\d+)?)|[eE](?P<e>[+-]?\d{{1,9}})"
    rf"|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?\^\s?[{{(]?(?P<power>[+-]?\d{{1,9}})[)}}]?)?)"
    rf"(?P<bad>[.,]?\d|[/^]|:\d)?(?P<percent>\s?\\?%)?(?:\s?(?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_WORD = re.compile(
    rf"(?<![\w'’-])(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<unit>{_UNITS}))?"
    rf"|(?P<word>{'|'.join(sorted(_SMALL, key=len, reverse=True))}))"
    rf"(?P<percent> ?%| percent\b)?(?: (?P<scale>{'|'.join(_SCALES)}))?(?![\w-])",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,40})\}\s?\{([^{}]{1,40})\}")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_VULGAR = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_UNIT_POWER = re.compile(r"(?<=[A-Za-z}])\s?\^\s?\{?[-+]?\d{1,9}\}?")
_MARKUP = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|left|right|[,;:! ])|[$*`{}]|\\[()\[\]]")
_CONCLUSION = re.compile(r"(?:\banswer\b|\bresult\b|答案)[^\n.]{0,40}?(?:\bis\b|[:：=]|是|为)", re.IGNORECASE)


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
    found = numbers(text or "")
    if mode == "strict":
        values = {(found_one[1].value, found_one[1].percent) if found_one[1] else None for found_one in found}
        return found[0][1] if len(values) == 1 else None
    prepared = _prepared(text or "")
    cues = list(_CONCLUSION.finditer(prepared))
    after = [one for start, one in found if cues and start >= cues[-1].end()]
    if after:
        return (
            after[0]
            if re.match(r"\s*\S{0,1}", prepared[cues[-1].end() :]) and _begins(prepared, cues[-1].end(), found)
            else after[-1]
        )
    usable = [one for _, one in found]
    if not usable:
        return None
    return usable[0] if _begins(prepared, 0, found) else usable[-1]


def _begins(prepared: str, start: int, found: list[tuple[int, Number | None]]) -> bool:
    first = next((position for position, _ in found if position >= start), None)
    return first is not None and not prepared[start:first].strip(" \n\t($€£¥~≈")


def numbers(text: str) -> list[tuple[int, Number | None]]:
    """All numbers of ``text`` by position (in the prepared text); None for one that cannot be read."""
    prepared = _prepared(text)
    found = [(m.start(), _value(m)) for m in _NUMBER.finditer(prepared)]
    found += [(m.start(), _word_value(m)) for m in _WORD.finditer(prepared)]
    return sorted(found, key=lambda pair: pair[0])


def _prepared(text: str) -> str:
    """``text`` in NFKC with plain signs and fractions, without markup and the exponents of units."""
    text = _SUPERSCRIPT.sub(lambda m: "^" + unicodedata.normalize("NFKC", m.group()), _VULGAR.sub(" ", text))
    text = text.replace("\u202f", "").replace("\u2009", "").replace("\u00a0", " ")
    text = unicodedata.normalize("NFKC", text).replace("⁄", "/")
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
