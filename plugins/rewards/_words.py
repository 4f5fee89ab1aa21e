"""Texts as words: one tokeniser for languages written with blanks and for those written without."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from evr1_core.api.answers.text import normalised

# Scripts of Chinese, Japanese, Thai, Lao and Khmer, which put no blanks between words: each character is a token.
_UNSPACED = (
    "\u0e00-\u0eff\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_CHUNK = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_LONGEST_STEMMED = 64  # no English word is longer, and the stemmer recurses over runs of y


def alike(text: str) -> str:
    """``text`` in NFKC with case and white space folded: what is equal in this form is the same text."""
    return " ".join(normalised(text).casefold().split())


def chunks(text: str) -> list[str]:
    """Runs between blanks, punctuation included; single characters in scripts without blanks."""
    return _CHUNK.findall(text)


def words(text: str) -> list[str]:
    """Stemmed lower-case words without punctuation; single characters in scripts without blanks.

    On ASCII these are the tokens of the `rouge-score` package with its stemmer.
    """
    folded = normalised(text).lower()
    if folded.isascii():
        return [_stem(word) for word in _ASCII_WORD.findall(folded)]
    spaced = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return [_stem(word) for word in _CHUNK.findall(spaced)]


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    # Porter's rules are English; rouge-score leaves words of up to three letters alone
    return str(_stemmer().stem(word)) if 3 < len(word) <= _LONGEST_STEMMED and word.isascii() else word


@cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


def f1(shared: float, guess: float, gold: float) -> float:
    """Harmonic mean of ``shared / guess`` and ``shared / gold``; 0 where one of them is empty."""
    return 2 * shared / (guess + gold) if guess and gold else 0.0


def numbered(left: Sequence[str], right: Sequence[str]) -> tuple[list[int], list[int]]:
    """Both sequences with each distinct token replaced by a number: hashing strings twice is what comparing costs."""
    ids: dict[str, int] = {}
    return [ids.setdefault(token, len(ids)) for token in left], [ids.setdefault(token, len(ids)) for token in right]
