"""What the comparisons of code share: hardened parsing and overlap of multisets."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

LONGEST = 100_000  # characters of a text that is parsed at all
DEEPEST = 100  # levels
MOST = 10_000  # elements
_WORD = re.compile(r"\w+|[^\w\s]")


def f1(guess: Counter[Any], gold: Counter[Any]) -> float:
    """2PR / (P + R) of two multisets; two empty ones are equal."""
    total = guess.total() + gold.total()
    return 2 * (guess & gold).total() / total if total else 1.0


def words_of(text: str | None) -> list[str]:
    """The words and marks of a text, in order."""
    return _WORD.findall(text or "")


def parsed_xml(text: str) -> Any:
    """The root of an XML document of moderate size; None for anything else, and for one that declares or uses entities."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",  # whatever the document declares: another encoding could hide entities
    )
    if len(text) > LONGEST or "<!ENTITY" in text:  # entities grow without end, in attributes even where they are not resolved
        return None
    try:
        root = etree.fromstring(text.strip().encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    entities = any(not isinstance(node.tag, str) for node in root.iter())
    return None if entities or not moderate(root) else root


def moderate(root: Any) -> bool:
    """Whether a tree stays within the limits of depth and number."""
    level, count, depth = [root], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > MOST or depth > DEEPEST:
            return False
        level = [child for node in level for child in node]
    return True
