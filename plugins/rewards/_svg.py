"""Drawings: hardened parsing, rendering without files or network, and comparison of pixels and elements.

Runs in a worker process: the renderer meets text that a model made up.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from evr1_plugins.rewards._trees import f1, parsed_xml, words_of

SIDE = 256  # pixels
PIXELS = 0.7  # weight of the pixels; the rest is that of the elements
NAMESPACE = "http://www.w3.org/2000/svg"
SHEET = (300.0, 150.0)  # size of a drawing that gives none, as browsers have it
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*(px|mm|cm|in|pt|pc|em)?\s*")
_UNITS = {None: 1.0, "px": 1.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0, "pt": 96 / 72, "pc": 16.0, "em": 16.0}
_UNSAFE = ("script", "foreignObject", "image", "feImage")  # would load, run or embed something


@frozen(eq=False)
class Drawing:
    """RGBA pixels, uint8 [4, 256, 256], colours times opacity; and how often each element and word occurs."""

    pixels: Any
    elements: Counter[str]


@lru_cache(maxsize=64)
def drawing(text: str) -> Drawing | None:
    """What an SVG text shows; None when it is no SVG, or too large, or cannot be drawn. Words are not drawn: fonts differ."""
    root = parsed_xml(text)
    if root is None or _name(root) != "svg":
        return None
    elements = Counter(_name(node) for node in root.iterdescendants())
    elements.update(f"word {word}" for node in root.iter() if _name(node) in ("text", "tspan") for word in words_of(node.text))
    pixels = _rendered(root)
    return None if pixels is None else Drawing(pixels, elements)


def similarity(guess: Drawing, gold: Drawing) -> float:
    """0.7 of the pixels and 0.3 of the elements; of the elements alone when the gold shows nothing but words."""
    elements = f1(guess.elements, gold.elements)
    if not gold.pixels[3].any():
        return elements
    return PIXELS * pixel_similarity(guess.pixels, gold.pixels) + (1 - PIXELS) * elements


def pixel_similarity(guess: Any, gold: Any) -> float:
    """1 less the mean difference over the pixels where either drawing differs from the sheet; 0 when nothing is drawn.

    The difference at a pixel is that of the channel which differs most, so that yellow is as far from the white sheet as black.
    Each pixel weighs as much as the stronger of both marks differs from the sheet: marks of one colour give the intersection over
    the union of what they cover, and a pale wash over the whole sheet earns next to nothing. A drawing in white alone lies on a
    black sheet.
    """
    for white in (True, False):
        left, right = ((picture[:3] + (255 - picture[3]) if white else picture[:3]) for picture in (guess, gold))
        drawn, marked = (_far(picture, np.uint8(255 if white else 0)) for picture in (left, right))
        if marked.max() > 1:  # more than rounding
            break
    if min(drawn.max(), marked.max()) <= 1:
        return 0.0
    return 1.0 - float(_far(left, right).sum() / np.maximum(drawn, marked).sum())


def _far(left: Any, right: Any) -> Any:
    """Difference of two pictures [3, ...] in the channel that differs most."""
    first, second, third = np.maximum(left, right) - np.minimum(left, right)
    return np.maximum(np.maximum(first, second), third)


def _rendered(root: Any) -> Any:
    from lxml import etree
    from svg2png_py import FontDatabase, svg_to_rgba

    _clean(root)
    text = etree.tostring(root, encoding="unicode")
    if root.tag == "svg":
        text = text.replace("<svg", f'<svg xmlns="{NAMESPACE}"', 1)
    try:
        raw, width, height = svg_to_rgba(text, FontDatabase())
    except (RuntimeError, ValueError):
        return None
    if (width, height) != (SIDE, SIDE):
        return None
    pixels = np.frombuffer(raw, dtype=np.uint8).reshape(SIDE, SIDE, 4).transpose(2, 0, 1).copy()
    np.minimum(pixels[:3], pixels[3], out=pixels[:3])  # rounding must not make a colour stronger than its opacity
    return pixels


def _clean(root: Any) -> None:
    """Takes out what reaches beyond the drawing, and fits it into the square, centred and in proportion."""
    for node in list(root.iterdescendants()):
        if _name(node) in _UNSAFE:
            node.getparent().remove(node)
            continue
        for key in list(node.attrib):
            if key.rpartition("}")[2] == "href" and not node.attrib[key].startswith("#"):
                del node.attrib[key]
    width, height = (_pixels(root.get(side)) for side in ("width", "height"))
    if not root.get("viewBox"):
        root.set("viewBox", f"0 0 {width or SHEET[0]:g} {height or SHEET[1]:g}")
    for key in ("preserveAspectRatio", "x", "y", "style", "class", "transform"):
        root.attrib.pop(key, None)
    root.set("width", str(SIDE))
    root.set("height", str(SIDE))


def _pixels(length: str | None) -> float | None:
    match = _LENGTH.fullmatch(length or "")
    return float(match[1]) * _UNITS[match[2]] if match else None


def _name(node: Any) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
