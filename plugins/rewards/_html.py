"""Web pages: hardened parsing, and comparison of elements, attributes, nesting and text. Runs in a worker process."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Any

from attrs import frozen

from evr1_plugins.rewards._trees import LONGEST, f1, moderate, words_of

STRUCTURE = 0.6  # weight of the elements; the rest is that of the text
_TAG = re.compile(r"<([a-z][a-z0-9-]{0,30})(?=[\s/>])", re.IGNORECASE)
_DEEPEST = 2_000  # open tags without a close tag
_SILENT = ("script", "style", "template")


@frozen(eq=False)
class Page:
    """``structure``: how often each element, attribute with its value, and pair of parent and child occurs. ``words``: in order."""

    structure: Counter[tuple[str, ...]]
    words: tuple[str, ...]


@lru_cache(maxsize=64)
def page(text: str) -> Page | None:
    """What an HTML text holds; None when it has no HTML element, or is too large. Elements that a parser adds do not count."""
    from lxml import etree
    from lxml.html import HTMLParser, defs

    written = {name.lower() for name in _TAG.findall(text)} if len(text) <= LONGEST else set()
    if not written & (defs.tags | {"svg", "main", "section"}) or abs(text.count("<") - 2 * text.count("</")) > _DEEPEST:
        return None
    parser = HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=False, encoding="utf-8")
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None or not moderate(root):
        return None
    structure: Counter[tuple[str, ...]] = Counter()
    words: list[str] = []
    for event, node in etree.iterwalk(root, events=("start", "end")):
        if event == "end":
            words += words_of(node.tail)
            continue
        words += words_of(node.text) if node.tag not in _SILENT else []
        if node.tag in written:
            structure.update(_features(node, written))
    return Page(structure, tuple(words))


def similarity(guess: Page, gold: Page) -> float:
    """0.6 of the F1 of the structure and 0.4 of that of the text, by the longest common subsequence of words; the structure alone
    where the gold has no text."""
    from rapidfuzz.distance import Indel

    structure = f1(guess.structure, gold.structure)
    if not gold.words:
        return structure
    return STRUCTURE * structure + (1 - STRUCTURE) * float(Indel.normalized_similarity(guess.words, gold.words))


def _features(node: Any, written: set[str]) -> list[tuple[str, ...]]:
    parent = node.getparent()
    while parent is not None and parent.tag not in written:
        parent = parent.getparent()
    attributes = [(node.tag, name, " ".join(value.split())) for name, value in node.attrib.items()]
    return [(node.tag,), *attributes, *([] if parent is None else [(parent.tag, node.tag)])]
