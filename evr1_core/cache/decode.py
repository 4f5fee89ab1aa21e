"""Frames of a file at chosen times, through PyAV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from evr1_core.api import MediaError


@frozen(kw_only=True)
class Stream:
    """What scanning the packets of a video tells. ``times``: seconds of every frame, ascending, from the first shown one."""

    times: tuple[float, ...]
    fps: float
    duration: float
    height: int
    width: int


def scan(path: str) -> Stream:
    """Times and size of a video, without decoding more than one frame. Raises MediaError."""
    with _opened(path) as container:
        stream = _video(container, path)
        stamps = sorted(packet.pts for packet in container.demux(stream) if packet.pts is not None and packet.size)
        if not stamps:
            raise MediaError(path, "undecodable", "the video stream holds no frames with a time")
        base = float(stream.time_base)
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        seconds = [(stamp - stamps[0]) * base for stamp in stamps]
        step = 1 / rate if rate else (seconds[-1] / (len(seconds) - 1) if len(seconds) > 1 else 1.0)
        duration = seconds[-1] + step
        height, width = _upright(container, stream, path)
    return Stream(times=tuple(seconds), fps=len(seconds) / duration, duration=duration, height=height, width=width)


def decode(path: str, numbers: Sequence[int]) -> list[NDArray[np.uint8]]:
    """The frames with the given numbers in order of presentation, upright, ``[H, W, 3]`` RGB. Raises MediaError."""
    wanted = set(numbers)
    found: dict[int, NDArray[np.uint8]] = {}
    import av

    with _opened(path) as container:
        stream = _video(container, path)
        stream.thread_type = "AUTO"
        try:
            for number, frame in enumerate(container.decode(stream)):
                if number in wanted:
                    found[number] = upright(frame)
                if number >= max(wanted):
                    break
        except av.FFmpegError as error:
            raise MediaError(path, "undecodable", f"decoding stopped after {len(found)} frames: {error}") from error
    if len(found) < len(wanted):
        raise MediaError(path, "truncated", f"only {len(found)} of {len(wanted)} chosen frames can be decoded")
    return [found[number] for number in numbers]


def upright(frame: Any) -> NDArray[np.uint8]:
    """A frame as RGB, turned as its rotation flag says."""
    picture: NDArray[np.uint8] = frame.to_ndarray(format="rgb24")
    return np.ascontiguousarray(np.rot90(picture, k=round(frame.rotation / 90) % 4))


def _opened(path: str) -> Any:
    import av

    try:
        return av.open(path)
    except FileNotFoundError as error:
        raise MediaError(path, "missing", "there is no such file") from error
    except (av.FFmpegError, OSError, ValueError) as error:
        raise MediaError(path, "undecodable", f"no readable media file ({error})") from error


def _video(container: Any, path: str) -> Any:
    if not container.streams.video:
        raise MediaError(path, "no_video_stream", "the file has no video stream")
    return container.streams.video[0]


def _upright(container: Any, stream: Any, path: str) -> tuple[int, int]:
    import av

    container.seek(0)
    try:
        picture = upright(next(container.decode(stream)))
    except (av.FFmpegError, StopIteration) as error:
        raise MediaError(path, "undecodable", f"the first frame cannot be decoded ({error})") from error
    return picture.shape[0], picture.shape[1]
