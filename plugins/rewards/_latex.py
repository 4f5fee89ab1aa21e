r"""The outer structure of a mathematical answer: sets, tuples, intervals, unions and equations, down to single expressions.

What is left of a text after cleaning is read as a whole: nothing is searched for in it, so nothing can be dropped from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from attrs import frozen

from evr1_core.api.answers import number

Kind = Literal["expression", "words", "set", "sequence", "union", "equation"]
DEEPEST = 8  # brackets within brackets that are taken apart
LONGEST = 2_000  # characters

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SYMBOLS = str.maketrans(
    {
        **{
            "−": "-",
            "–": "-",
            "⁄": "/",
            "×": "\\times ",
            "÷": "\\div ",
            "·": "\\cdot ",
            "⋅": "\\cdot ",
            "≤": "\\le ",
            "≥": "\\ge ",
        },
        **{
            "≠": "\\ne ",
            "π": "\\pi ",
            "∞": "\\infty ",
            "°": "^\\circ ",
            "∪": "\\cup ",
            "∈": "\\in ",
            "±": "\\pm ",
            "∅": "\\emptyset ",
        },
    }
)
_ROOT = re.compile(r"√\s*(?:\(([^()]*)\)|(\d+(?:\.\d+)?|[A-Za-z]))|(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)")
_FUNCTION = re.compile(
    r"(?<![\\A-Za-z])(sin|cos|tan|cot|sec|csc|ln|log|exp|arcsin|arccos|arctan)(?=[ (^_])|(?<![\\A-Za-z])(pi)(?![A-Za-z])"
)
_POWER = re.compile(r"(?<=\d)[eE]([+-]?\d+)(?![\d.A-Za-z])")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[ ,]\d{3})+(?![\d,])")
_MIXED = re.compile(r"(?<![\d.^_])(\d+) (\d+)/(\d+)(?![\d.])")
_SPACING = re.compile(
    r"\\(?:left|right|displaystyle|limits|[bB]igg?[lr]?)(?![A-Za-z])|\\[,;:!]|\\(?: |quad(?![A-Za-z])|qquad(?![A-Za-z]))|~"
)
_DEGREES = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})")
_OF_ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_REPEATING = re.compile(r"(?<![\d.])(\d{0,30})\.(\d{0,30})\\(?:overline|bar|dot)\s*(?:\{(\d{1,30})\}|(\d))")
_ANGLE = re.compile(r"\\[lr]angle(?![A-Za-z])")
_STARS = re.compile(r"(?<=[A-Za-z0-9)\]}])\*\*(?=[A-Za-z0-9({\\-])")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.DOTALL)
_DELIMITED = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_CUE = re.compile(
    r"(?:(?:so|thus|hence|therefore),? )?(?:the )?(?:final )?(?:answer|result|value|solution)s?(?: is| are|:)\s*:?\s*",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?![A-Za-z(])")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mbox|operatorname)\s*\{([^{}]*)\}")
_BASE = re.compile(r"\d\s*_")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z' -]*")
_JOINED = re.compile(r"(?:,|;)?\s*(?:\\text\s*\{\s*(?:and|or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*|[,;]")
_UNION = re.compile(r"\\cup(?![A-Za-z])")
_EQUALS = re.compile(r"(?<![<>!\\:])=")
_MEMBER = re.compile(r"^[A-Za-z]\w*\s*\\in(?![A-Za-z])\s*")
_NAME = re.compile(r"\\?[A-Za-z]+(?:_(?:\w|\{\w+\}))?'?(?:\([A-Za-z](?:,[A-Za-z])*\))?")
_OPENERS, _CLOSERS = "([{", ")]}"


@frozen
class Node:
    """``text``: the expression, the words, or the brackets of a sequence or set; ``parts``: members, ends or sides."""

    kind: Kind
    text: str = ""
    parts: tuple[Node, ...] = ()


def clean(text: str) -> str | None:
    """One line of LaTeX without delimiters, emphasis and spacing; None when prose holds no single expression."""
    if len(text) > LONGEST:
        return None
    text = _RAISED.sub(lambda m: "^{" + m[0].translate(_SUPERSCRIPTS) + "}", text)
    text = unicodedata.normalize("NFKC", text).translate(_SYMBOLS)
    text = re.sub(r"\*\*|__|`", "", _STARS.sub("^", " ".join(text.split()))).strip()
    text = _CUE.sub("", text, count=1) if _CUE.match(text) else text
    found = _expression(text.rstrip(".。 "))
    return None if found is None else _spelled(found)


def _expression(text: str) -> str | None:
    """The one expression in a text: the text itself, or in prose the only delimited or the only number."""
    delimited = ["".join(filter(None, groups)).strip() for groups in _DELIMITED.findall(text)]
    if not _prose(_DELIMITED.sub(" ", text)):
        text = _DELIMITED.sub(lambda m: "".join(filter(None, m.groups())), text)
        boxed = _BOXED.fullmatch(text.strip(" $"))
        return (boxed[1] if boxed else text).strip(" $.")
    if delimited:
        return delimited[0] if len(set(delimited)) == 1 else None
    if (cue := list(_CUE.finditer(text))) and not _prose(rest := text[cue[-1].end() :]):
        return rest
    found = number(text)
    return None if found is None else f"{found.value:.15g}"


def _prose(text: str) -> bool:
    return len([word for word in _WORD.findall(_TEXT.sub("", text)) if word.lower() not in ("and", "or", "pi", "sqrt")]) > 2


def _spelled(text: str) -> str:
    text = _FRACTION.sub(r"\\frac", _SPACING.sub(" ", text))
    text = _ROOT.sub(lambda m: "\\sqrt{" + (m[1] or m[2] or m[3] or "") + "}", text)
    text = _FUNCTION.sub(r"\\\1\2", text)
    if _OF_ANGLE.search(text):  # elsewhere degrees are a unit, which is dropped
        text = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    text = _REPEATING.sub(_as_fraction, _ANGLE.sub(lambda m: "(" if m[0][1] == "l" else ")", text))
    text = _POWER.sub(r" \\times 10^{\1}", text)
    text = _MIXED.sub(r"(\1+\\frac{\2}{\3})", text)
    return " ".join(text.replace("{,}", ",").split())


def _as_fraction(match: re.Match[str]) -> str:
    """``0.1\\overline{6}`` as the fraction 15/90."""
    whole, fixed, repeated = match[1] or "0", match[2], match[3] or match[4]
    above = int(whole + fixed + repeated) - int(whole + fixed)
    return f"\\frac{{{above}}}{{{10 ** len(fixed) * (10 ** len(repeated) - 1)}}}"


@lru_cache(maxsize=256)
def structure(text: str, depth: int = 0) -> Node:
    """The structure of a cleaned text."""
    text = _MEMBER.sub("", text.strip())
    if depth == 0:
        text = _top_thousands(text)
    if depth > DEEPEST:
        return Node("expression", text)

    def inner(part: str) -> Node:
        return structure(part, depth + 1)

    if len(ends := split(text, _UNION)) > 1:
        return Node("union", parts=tuple(map(inner, ends)))
    if len(members := split(text, _JOINED)) > 1 and all(members):
        return Node("set", parts=tuple(map(inner, members)))
    if len(sides := split(text, _EQUALS)) > 1 and all(sides):
        return _signs(text, inner) or Node("equation", parts=tuple(map(inner, sides)))
    return _bracketed(text, inner) or _words(text) or _signs(text, inner) or Node("expression", text)


def _top_thousands(text: str) -> str:
    """Thousands separators removed outside brackets, where a comma more likely parts coordinates."""
    return text if re.search(r"[(\[]|\\\{", text) else _THOUSANDS.sub(lambda m: m[0].replace(",", "").replace(" ", ""), text)


def _signs(text: str, inner: Callable[[str], Node]) -> Node | None:
    """Both values of an expression with one plus-minus sign."""
    if len(re.findall(r"\\pm(?![A-Za-z])", text)) != 1:
        return None
    return Node("set", parts=tuple(inner(re.sub(r"\\pm(?![A-Za-z])", sign, text)) for sign in ("+", "-")))


def _bracketed(text: str, inner: Callable[[str], Node]) -> Node | None:
    opener, closer = text[:1], text[-1:]
    if text.startswith("\\{") and text.endswith("\\}"):
        content, opener, closer = text[2:-2], "{", "}"
    elif opener and opener in "([" and closer in ")]":
        content = text[1:-1]
    else:
        return None
    if not _balanced(content):
        return None
    members = split(content, re.compile(r"[,;]"))
    if opener == "{":
        return Node("set", "{}", tuple(map(inner, members))) if all(members) else None
    if len(members) > 1 and all(members):
        return Node("sequence", opener + closer, tuple(map(inner, members)))
    return None


def _words(text: str) -> Node | None:
    """Plain words, in or outside ``\\text{}``; a few letters are a product of variables. A number with a base goes by its text, as
    the library would drop the base.
    """
    if _BASE.search(text):
        return Node("words", re.sub(r"[{}\s]", "", text))
    bare = _TEXT.sub(r"\1", text).strip()
    if bare != text and len(bare) == 1:
        return Node("expression", bare)
    if _PLAIN.fullmatch(bare) and (bare != text or re.search(r"[A-Za-z]{3}", bare)):
        return Node("words", " ".join(bare.casefold().split()))
    return None


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char in _OPENERS) - (char in _CLOSERS)
        if depth < 0:
            return False
    return depth == 0


def split(text: str, separator: re.Pattern[str]) -> list[str]:
    """The pieces of ``text`` between separators that stand outside brackets, trimmed."""
    pieces, depth, start, position = [], 0, 0, 0
    for match in separator.finditer(text):
        depth += sum((char in _OPENERS) - (char in _CLOSERS) for char in text[position : match.start()])
        if depth == 0:
            pieces.append(text[start : match.start()].strip())
            start = match.end()
        position = match.start()
    return [*pieces, text[start:].strip()]


def is_name(node: Node) -> bool:
    """Whether a side of an equation only names what the other side gives: ``x``, ``a_1``, ``f(x)``, ``area``."""
    return node.kind == "words" or (node.kind == "expression" and _NAME.fullmatch(node.text) is not None)
