"""Options of a multiple-choice question: their labels and texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from attrs import frozen

from evr1_core.api.answers.text import fold, folded

DEFAULT_LABELS = "ABCDEFGHIJ"  # of a question without options
_LABEL = re.compile(r"\s*(?:[(（\[]([A-Za-z])[)）\]]|([A-Za-z])\s?[.．:：)）、])(?:\s+|(?=[^\s.]))(.*)", re.DOTALL)


@frozen
class Options:
    """``labels``: one capital letter each. ``texts``: folded, labels stripped; empty without options."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]

    def by_text(self, text: str) -> str | None:
        """The label of the one option whose text equals plain ``text`` after folding; None for none, or two alike."""
        wanted = fold(text)
        hits = [label for label, option in zip(self.labels, self.texts, strict=False) if option == wanted]
        return hits[0] if len(hits) == 1 and wanted else None


def split_options(options: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels and texts of options as they stand in data ("A. x", "A: x", "(A) x", "A) x", or unlabelled).

    Labels count when every option has one and they ascend; they need not start at A. Otherwise options are labelled by position,
    and a label that fits the position is stripped, so that "A. Smith" as second option keeps its text.
    """
    matches = [_LABEL.fullmatch(option) for option in options]
    found = [(m[1] or m[2]).upper() if m else "" for m in matches]
    if options and all(found) and all(a < b for a, b in pairwise(found)):
        return tuple(found), tuple(m[3].strip() for m in matches if m)
    labels = tuple(chr(ord("A") + index) for index in range(len(options)))
    stripped = (
        m[3] if m and own == label else option for m, own, label, option in zip(matches, found, labels, options, strict=True)
    )
    return labels, tuple(text.strip() for text in stripped)


@lru_cache(maxsize=4096)
def read_options(options: tuple[str, ...]) -> Options:
    """The options of a question; without any, the letters A to J."""
    if not options:
        return Options(tuple(DEFAULT_LABELS), ())
    labels, texts = split_options(options)
    return Options(labels, tuple(folded(text) for text in texts))
