"""What a video file holds: the time of every frame, key frames, size, upright direction - from its packets, not from its header."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import av
from attrs import frozen

from evr1_core.api import MediaError
from evr1_core.cache.turn import Turn, turn_of

TOLERANCE = 0.02  # headers may promise this share more than there is, and nothing is wrong


@frozen(kw_only=True)
class Packet:
    """One compressed frame in file order; ``stamp`` in ticks of the stream's clock."""

    stamp: int | None
    key: bool


@frozen(kw_only=True, eq=False)
class Stream:
    """The first video stream of a file.

    ``times``: seconds of every frame, ascending, from the first shown one; ``stamps``: the same on the stream's clock, None where
    the file has none and frames are known by their order. ``height``, ``width``: upright, with square pixels. ``promised``: frames
    that the header tells of, 0 if it does not; ``readable``: the share of them that is there. ``proven``: ``times`` are those of
    frames that did decode, one after the other.
    """

    times: tuple[float, ...]
    stamps: tuple[int, ...] | None
    packets: tuple[Packet, ...]
    fps: float
    duration: float
    height: int
    width: int
    turn: Turn
    codec: str
    readable: float
    promised: float
    proven: bool = False


def scan(path: str) -> Stream:
    """Reads all packets and decodes one frame. Raises MediaError."""
    with opened(path) as container:
        video = video_stream(container, path)
        context = video.codec_context
        packets: list[Packet] = []
        shown: list[int | None] = []
        last_length, hidden, picture = 0, 0, None
        for packet in demuxed(container, video):
            if picture is None:
                picture = next(iter(decoded(context, packet)), None)
            packets.append(Packet(stamp=packet.pts, key=packet.is_keyframe))
            hidden += packet.is_discard
            if not packet.is_discard and not packet.is_corrupt:
                shown.append(packet.pts)
                last_length = packet.duration or 0
        if picture is None:
            picture = next(iter(decoded(context, None)), None)
        if picture is None or not shown:
            raise MediaError(path, "undecodable", f"no frame of its {context.name} video can be decoded")
        turn = turn_of(picture)
        height, width = _upright(picture, video.sample_aspect_ratio, turn)
        promised = _promised(container, video, 1 - hidden / len(packets))
        times, stamps, rate, duration = _clock(video, shown, last_length)
        return Stream(
            times=times,
            stamps=stamps,
            packets=tuple(packets),
            fps=rate,
            duration=duration,
            height=height,
            width=width,
            turn=turn,
            codec=context.name,
            readable=readable(len(times), promised),
            promised=promised,
        )


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """The container. Raises MediaError for everything that keeps it from being one."""
    try:
        if os.stat(path).st_size == 0:
            raise MediaError(path, "empty", "is empty")
        # an absolute path is never taken for a URL, and a playlist must not reach for the network
        container = av.open(os.path.abspath(path), options={"protocol_whitelist": "file"})
    except FileNotFoundError as error:
        raise MediaError(path, "missing", "there is no such file") from error
    except PermissionError as error:
        raise MediaError(path, "forbidden", "may not be read") from error
    except IsADirectoryError as error:
        raise MediaError(path, "no_file", "is a folder") from error
    except (av.FFmpegError, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MediaError(path, "undecodable", f"is no media file, or its index is lost ({reason})") from error
    with container:
        yield container


def video_stream(container: Any, path: str) -> Any:
    """The first video stream that is no cover picture and has a decoder."""
    videos = [video for video in container.streams.video if not video.disposition & av.stream.Disposition.attached_pic]
    if not videos:
        raise MediaError(path, "no_video_stream", "has no video stream")
    video = videos[0]
    if video.codec_context is None:
        raise MediaError(path, "no_decoder", f"there is no decoder for its video ({video})")
    return video


def demuxed(container: Any, video: Any) -> Iterator[Any]:
    """The packets of a stream, up to the end or to where the file is cut off."""
    try:
        for packet in container.demux(video):
            if packet.size:
                yield packet
    except av.FFmpegError:
        return  # how much is missing shows in the number of frames


def decoded(context: Any, packet: Any) -> list[Any]:
    """The whole frames that come out for a packet; a broken packet gives none."""
    try:
        return [frame for frame in context.decode(packet) if not frame.is_corrupt]
    except MemoryError:  # FFmpeg's is one of its errors, too, and says nothing about the packet
        raise
    except av.FFmpegError:
        return []  # which frames are missing is counted by their times


def readable(found: int, promised: float) -> float:
    """The share of the promised frames that was found."""
    return 1.0 if found >= promised * (1 - TOLERANCE) else found / promised


def _promised(container: Any, video: Any, share_shown: float) -> float:
    """Frames that the header tells of, less those that an edit list hides; 0 where it tells nothing."""
    if video.frames:
        return video.frames * share_shown
    length = float(video.duration * video.time_base) if video.duration else 0.0
    if not length and container.duration and len(container.streams) == 1:
        length = (container.duration - max(container.start_time or 0, 0)) / av.time_base
    return length * float(video.average_rate or 0)


def _clock(video: Any, shown: list[int | None], last_length: int) -> tuple[tuple[float, ...], tuple[int, ...] | None, float, float]:
    """(times, stamps, frames a second, duration) of the shown frames."""
    base, rate = video.time_base, video.average_rate
    stamps = sorted({stamp for stamp in shown if stamp is not None})
    if len(stamps) < len(shown) and None in shown:  # no times, or not for all: frames come one after the other
        rate = video.guessed_rate or rate or Fraction(25)
        return tuple(float(number / rate) for number in range(len(shown))), None, float(rate), float(len(shown) / rate)
    times = tuple(float((stamp - stamps[0]) * base) for stamp in stamps)
    duration = _duration(times, last_length * base, rate, base)
    return times, tuple(stamps), len(times) / duration, duration


def _duration(times: tuple[float, ...], last_length: Fraction, rate: Fraction | None, base: Fraction) -> float:
    """Seconds until the last frame is gone; by the frame rate where that agrees, since clocks of some formats are coarse."""
    step = times[-1] / (len(times) - 1) if len(times) > 1 else float(1 / rate) if rate else 1.0
    length = times[-1] + (float(last_length) or step)
    by_rate = float(len(times) / rate) if rate else 0.0
    return by_rate if abs(by_rate - length) <= 2 * float(base) else length


def _upright(picture: Any, aspect: Fraction | None, turn: Turn) -> tuple[int, int]:
    """(height, width) as shown: pixels made square by widening or narrowing, then turned."""
    width = max(1, round(picture.width * (aspect or 1)))
    return (width, picture.height) if turn.swap else (picture.height, width)
