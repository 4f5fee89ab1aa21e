"""The space that a model writes boxes in, for one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from evr1_core.api.clips import BoxSpace, Clip
from evr1_core.api.samples import Sample


def prediction_space(kind: Literal["norm1000", "resized"], clips: Sequence[Clip]) -> BoxSpace:
    """The box space of a model family (``kind``) with the frame sizes of a record's first clip.

    Source sizes come from the clip's record of the video; an image has none, so boxes in pixels of an image need ``width`` and
    ``height`` in the data. Without clips all sizes are unknown.
    """
    if not clips:
        return BoxSpace(kind=kind)
    height, width = clips[0].frames.shape[-2:]
    meta = clips[0].meta
    source = (0, 0) if meta is None else (meta.source_width, meta.source_height)
    return BoxSpace(kind=kind, width=source[0], height=source[1], resized_width=int(width), resized_height=int(height))


def expected_space(kind: Literal["norm1000", "resized"], sample: Sample) -> BoxSpace:
    """The box space before any media are decoded, for feeding a gold back: a made-up frame where decoding will give the sizes (a
    video), since there and back cancels them; no sizes where it will not."""
    if not sample.media or sample.media[0].kind != "video":
        return BoxSpace(kind=kind)
    return BoxSpace(kind=kind, width=1000, height=1000, resized_width=1000, resized_height=1000)
