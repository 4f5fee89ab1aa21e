"""Conversion of boxes between the spaces that data and models write them in."""

from __future__ import annotations

from evr1_core.api.clips import BoxSpace

Box = tuple[float, float, float, float]
KINDS = ("pixel", "resized", "norm1", "norm1000")


def extent(space: BoxSpace) -> tuple[float, float]:
    """Width and height of the whole frame in the numbers of ``space``; zeros when the frame's size is not known."""
    if space.kind == "pixel":
        return float(space.width), float(space.height)
    if space.kind == "resized":
        return float(space.resized_width), float(space.resized_height)
    return (1.0, 1.0) if space.kind == "norm1" else (1000.0, 1000.0)


def convertible(source: BoxSpace, target: BoxSpace) -> bool:
    """Whether boxes of ``source`` can be written in ``target``: one kind, or both frame sizes known."""
    return source.kind == target.kind or min(*extent(source), *extent(target)) > 0


def converted(box: Box, source: BoxSpace, target: BoxSpace) -> Box:
    """``box`` of ``source`` in the numbers of ``target``; unchanged when both are of one kind.

    640 x 480 pixels: norm1000 [250, 500, 750, 1000] is pixel [160, 240, 480, 480].
    """
    if source.kind == target.kind:
        return box
    (from_width, from_height), (to_width, to_height) = extent(source), extent(target)
    x, y = to_width / from_width, to_height / from_height
    return box[0] * x, box[1] * y, box[2] * x, box[3] * y


def clamped(box: Box, frame: BoxSpace) -> Box:
    """``box`` of ``frame`` without what lies outside it; unchanged when the frame's size is not known."""
    width, height = extent(frame)
    if min(width, height) <= 0:
        return box
    return min(max(box[0], 0.0), width), min(max(box[1], 0.0), height), min(max(box[2], 0.0), width), min(max(box[3], 0.0), height)
