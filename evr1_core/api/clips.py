"""Decoded media: frames, the record of where they come from, and the grids they are measured in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import frozen

if TYPE_CHECKING:
    from torch import Tensor


@frozen(kw_only=True)
class VideoMetadata:
    """Where the kept frames of a video come from; carried unchanged to rollout, training and evaluation.

    ``fps`` (frames per second), ``total_frames`` and ``duration`` (seconds) are those of the source. ``indices`` number the kept
    frames in the source; ``times`` are their presentation times in seconds from the first shown frame of the file (of the span,
    when one was asked for); both repeat their last value where the last frame is repeated. ``readable`` is the share of the
    promised frames that the file still has. ``height`` and ``width`` are those of the kept frames, ``source_*`` those of the
    upright source, in pixels.
    """

    fps: float
    total_frames: int
    duration: float
    indices: tuple[int, ...]
    times: tuple[float, ...]
    height: int
    width: int
    source_height: int
    source_width: int
    readable: float = 1.0


@frozen(kw_only=True, eq=False)
class Clip:
    """Frames ready for the model: uint8 ``[T, 3, H, W]``, RGB. An image has T = 1 and ``meta`` None."""

    frames: Tensor
    meta: VideoMetadata | None = None

    @property
    def kind(self) -> Literal["image", "video"]:
        """``video`` when there is a time record, else ``image``."""
        return "image" if self.meta is None else "video"


@frozen(kw_only=True)
class PatchGrid:
    """How a model family cuts frames: ``patch`` in pixels, ``merge`` in patches a side, ``temporal`` in frames."""

    patch: int
    merge: int
    temporal: int

    @property
    def factor(self) -> int:
        """Sides of frames are multiples of this many pixels."""
        return self.patch * self.merge


@frozen(kw_only=True)
class BoxSpace:
    """The space that the numbers of a box live in.

    ``pixel``: pixels of the upright source frame (``width`` x ``height``); ``resized``: pixels of the frame the model saw;
    ``norm1``: 0 to 1; ``norm1000``: 0 to 1000.
    """

    kind: Literal["pixel", "resized", "norm1", "norm1000"]
    width: int = 0
    height: int = 0
    resized_width: int = 0
    resized_height: int = 0
