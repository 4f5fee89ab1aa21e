"""From a media file to frames, in this process: scan, plan, decode, resize. Everybody's frames are made here."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from evr1_core.api import Clip, Media, MediaError, PatchGrid, VideoMetadata
from evr1_core.cache import decode
from evr1_core.cache.images import image_source_size, load_image
from evr1_core.cache.plan import Plan, choose, image_size, num_frames, padded, tokens, video_size
from evr1_core.cache.resize import Converter
from evr1_core.cache.scan import Stream, scan
from evr1_core.config.schema import FramesConfig

IN_FLIGHT = 4  # decoded frames that wait for being resized


@frozen(kw_only=True)
class Budget:
    """What decides frames and sizes."""

    frames: FramesConfig
    grid: PatchGrid


def plan(media: Media, budget: Budget) -> tuple[Plan, VideoMetadata | None]:
    """What a file will become; of a video, one frame is decoded for that. Raises MediaError."""
    if media.kind == "image":
        height, width = image_size(*image_source_size(media.path), budget.frames, budget.grid, media.path)
        return _as_plan(1, height, width, budget.grid), None
    meta = choose_frames(media, _whole_enough(media, scan(media.path), budget), budget)
    return _as_plan(len(meta.indices), meta.height, meta.width, budget.grid), meta


def produce(media: Media, budget: Budget, *, threads: int = 0) -> Clip:
    """The frames of a file. Raises MediaError."""
    if media.kind == "image":
        frames, _ = load_image(media.path, lambda height, width: image_size(height, width, budget.frames, budget.grid, media.path))
        return Clip(frames=frames)
    stream = _whole_enough(media, scan(media.path), budget)
    clip = _decoded(media, stream, budget, threads)
    if clip is None:  # packets promised frames that do not come
        clip = _decoded(media, _whole_enough(media, decode.prove(media.path, stream), budget), budget, threads)
    if clip is None:
        raise MediaError(media.path, "undecodable", "decodes differently each time")
    return clip


def choose_frames(media: Media, stream: Stream, budget: Budget) -> VideoMetadata:
    """Which frames of a stream are kept, and how large. Raises MediaError."""
    low, high = media.span or (0.0, stream.duration)
    inside = _inside(stream, low, high)
    if not inside:
        raise MediaError(media.path, "empty_span", f"has no frame between {low:g} and {high:g} s; it is {stream.duration:g} s long")
    times = [stream.times[number] for number in inside]
    length = min(high, stream.duration) - max(low, 0.0)
    kept = padded(choose(times, num_frames(length, len(inside), budget.frames)), budget.grid)
    height, width = video_size(stream.height, stream.width, len(kept), budget.frames, budget.grid, media.path)
    return VideoMetadata(
        fps=stream.fps,
        total_frames=len(stream.times),
        duration=length,
        indices=tuple(inside[place] for place in kept),
        times=tuple(times[place] - times[0] for place in kept),
        height=height,
        width=width,
        source_height=stream.height,
        source_width=stream.width,
        readable=stream.readable,
    )


def too_broken(media: Media, readable: float, frames: FramesConfig) -> MediaError:
    """What is said of a file with too few of its frames left."""
    share = f"{readable:.0%} of the promised frames can be read"
    return MediaError(media.path, "truncated", f"{share}; frames.video_min_readable asks for {frames.video_min_readable:.0%}")


def _inside(stream: Stream, low: float, high: float) -> list[int]:
    """Numbers of the frames shown from ``low`` on and before ``high``; where none begins then, the one that is on show."""
    edge = 1e-6  # seconds
    inside = [number for number, time in enumerate(stream.times) if low - edge <= time < high - edge]
    if not inside and low <= high and 0 <= low < stream.duration:
        inside = [max(number for number, time in enumerate(stream.times) if time <= low + edge)]
    return inside


def _whole_enough(media: Media, stream: Stream, budget: Budget) -> Stream:
    if not stream.times:
        raise MediaError(media.path, "undecodable", f"no frame of its {stream.codec} video can be decoded")
    if stream.readable < budget.frames.video_min_readable:
        raise too_broken(media, stream.readable, budget.frames)
    return stream


def _decoded(media: Media, stream: Stream, budget: Budget, threads: int) -> Clip | None:
    meta = choose_frames(media, stream, budget)
    numbers = sorted(set(meta.indices))
    frames = torch.empty((len(meta.indices), 3, meta.height, meta.width), dtype=torch.uint8)
    place, done = 0, 0
    for number, picture in _pictures(media.path, stream, numbers, Converter(meta.height, meta.width, stream.turn), threads):
        while place < len(meta.indices) and meta.indices[place] <= number:
            frames[place] = picture
            place += 1
        done += 1
    return Clip(frames=frames, meta=meta) if done == len(numbers) else None


def _pictures(
    path: str, stream: Stream, numbers: Collection[int], convert: Converter, threads: int
) -> Iterator[tuple[int, Tensor]]:
    """(number, picture); decoding goes on while a picture is resized, unless one thread is all there may be."""
    found = decode.frames(path, stream, numbers, threads=threads)
    if threads == 1:
        yield from ((number, convert(frame)) for number, frame in found)
        return
    waiting: deque[tuple[int, Future[Tensor]]] = deque()
    with ThreadPoolExecutor(1) as helper:
        for number, frame in found:
            waiting.append((number, helper.submit(convert, frame)))
            if len(waiting) > IN_FLIGHT:
                yield _finished(waiting)
        while waiting:
            yield _finished(waiting)


def _finished(waiting: deque[tuple[int, Future[Any]]]) -> tuple[int, Tensor]:
    number, picture = waiting.popleft()
    return number, picture.result()


def _as_plan(count: int, height: int, width: int, grid: PatchGrid) -> Plan:
    return Plan(num_frames=count, height=height, width=width, num_tokens=tokens(count, height, width, grid))
