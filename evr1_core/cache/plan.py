"""How many frames, at which times, and how large: one decision for training, rollout and evaluation."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from attrs import frozen

from evr1_core.api import MediaError, PatchGrid
from evr1_core.config.schema import FramesConfig

MAX_RATIO = 200  # of the longer to the shorter side
MIN_TOKENS = {"video": 128, "image": 4}  # of one frame, when no minimum of pixels is set
MAX_TOKENS_PER_FRAME = 768
SLACK = 1e-6  # frames; binary fractions of seconds must not cost two of them


@frozen(kw_only=True)
class Plan:
    """What the model will see of a file: ``num_frames`` of ``height`` x ``width`` pixels, ``num_tokens`` visual tokens in all."""

    num_frames: int
    height: int
    width: int
    num_tokens: int


def num_frames(duration: float, available: int, config: FramesConfig) -> int:
    """Distinct frames to take of a video of ``duration`` seconds with ``available`` frames, at least two places even where there is
    only one; even, but for a fixed ``video_frames``."""
    if config.video_frames is not None:
        return max(2, min(config.video_frames, available))
    least = math.ceil(config.video_min_frames / 2) * 2
    wanted = min(max(duration * config.video_fps, least), config.video_max_frames, available)
    return max(2, math.floor((wanted + SLACK) / 2) * 2)


def choose(times: Sequence[float], count: int) -> list[int]:
    """Numbers of the frames nearest to ``count`` times spread evenly from the first to the last; ``times`` ascend.

    No frame is taken twice, unless there are fewer than asked for: then the last is repeated.
    """
    if count >= len(times):
        return [*range(len(times)), *[len(times) - 1] * (count - len(times))]
    span = times[-1] - times[0]
    chosen: list[int] = []
    for number in range(count):
        place = _nearest(times, times[0] + span * number / max(count - 1, 1))
        low = chosen[-1] + 1 if chosen else 0
        chosen.append(min(max(place, low), len(times) - (count - number)))
    return chosen


def _nearest(times: Sequence[float], target: float) -> int:
    """At a tie (up to rounding) the even number, as ``round`` does, so that a constant rate gives the published indices."""
    place = bisect_left(times, target)
    if place == 0:
        return 0
    if place == len(times):
        return place - 1
    before, after = target - times[place - 1], times[place] - target
    if math.isclose(before, after, rel_tol=1e-6):
        return place - place % 2
    return place - 1 if before < after else place


def padded(chosen: Sequence[int], grid: PatchGrid) -> list[int]:
    """The same with the last repeated until the temporal patches are full."""
    return [*chosen, *[chosen[-1]] * (-len(chosen) % grid.temporal)]


def video_size(height: int, width: int, count: int, config: FramesConfig, grid: PatchGrid, path: str) -> tuple[int, int]:
    """(height, width) of the kept frames of a video."""
    least, most = frame_limits(count, config, grid)
    return fit(height, width, least, most, grid.factor, path)


def frame_limits(count: int, config: FramesConfig, grid: PatchGrid) -> tuple[int, int]:
    """(least, most) pixels of one of ``count`` frames: the total is shared out, but no frame falls below its minimum for that."""
    unit = grid.factor**2
    least = config.video_min_pixels or min(MIN_TOKENS["video"] * unit, config.video_max_pixels)
    share = min(MAX_TOKENS_PER_FRAME * unit, config.video_total_pixels * grid.temporal / count)
    return least, int(min(config.video_max_pixels, max(share, int(1.05 * least))))


def image_size(height: int, width: int, config: FramesConfig, grid: PatchGrid, path: str) -> tuple[int, int]:
    """(height, width) of an image."""
    least = config.image_min_pixels or min(MIN_TOKENS["image"] * grid.factor**2, config.image_max_pixels)
    return fit(height, width, least, config.image_max_pixels, grid.factor, path)


def fit(height: int, width: int, least: int, most: int, factor: int, path: str) -> tuple[int, int]:
    """Sides as multiples of ``factor`` that keep the shape, with ``least`` to ``most`` pixels. Raises MediaError for a strip."""
    if max(height, width) > MAX_RATIO * min(height, width):
        raise MediaError(path, "too_thin", f"{width} x {height} is more than {MAX_RATIO} times as long as it is wide")
    rows, columns = (max(factor, round(side / factor) * factor) for side in (height, width))
    if rows * columns > most:
        shrink = math.sqrt(height * width / most)
        rows, columns = (max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    elif rows * columns < least:
        grow = math.sqrt(least / (height * width))
        rows, columns = (math.ceil(side * grow / factor) * factor for side in (height, width))
    return rows, columns


def tokens(count: int, height: int, width: int, grid: PatchGrid) -> int:
    """Visual tokens of ``count`` frames."""
    return -(-count // grid.temporal) * (height // grid.factor) * (width // grid.factor)
