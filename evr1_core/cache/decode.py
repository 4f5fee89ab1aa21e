"""Chosen frames of a video: only the packets that they need are decoded, and only they are converted.

Frames come out the same however they are reached. What a decoder may leave out (frames that no other frame refers to and nobody
asked for) changes no other frame.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from attrs import evolve

from evr1_core.cache import scan
from evr1_core.cache.runs import plan_runs
from evr1_core.cache.scan import Stream


def frames(path: str, stream: Stream, numbers: Collection[int], *, threads: int = 0) -> Iterator[tuple[int, Any]]:
    """(number, frame) for the frames with these numbers in order of presentation, as far as they can be decoded, ascending.

    ``threads``: of the decoder; 0 leaves it to FFmpeg. Raises MediaError when the file cannot be opened any more.
    """
    with scan.opened(path) as container:
        video = scan.video_stream(container, path)
        if stream.stamps is None:
            yield from _by_order(container, video, set(numbers), 1 if stream.proven else threads)
            return
        wanted = {stream.stamps[number]: number for number in numbers}
        found = _all(container, video) if stream.proven else _sparse(container, video, stream, wanted, threads)
        for frame in found:
            number = wanted.pop(frame.pts, None)
            if number is not None:
                yield number, frame
            if not wanted:
                return


def prove(path: str, stream: Stream) -> Stream:
    """The same stream with the times of the frames that do decode: for files whose packets are not what they seem."""
    with scan.opened(path) as container:
        found = [frame.pts for frame in _all(container, scan.video_stream(container, path))]
    if stream.stamps is None or None in found:
        times, stamps = tuple(number / stream.fps for number in range(len(found))), None
    else:
        stamps = tuple(sorted(set(found)))
        ticks = (stream.times[-1] - stream.times[0]) / max(stream.stamps[-1] - stream.stamps[0], 1)
        times = tuple((stamp - stamps[0]) * ticks for stamp in stamps)
    duration = times[-1] + 1 / stream.fps if times else 0.0
    share = scan.readable(len(times), max(stream.promised, len(stream.times)))
    return evolve(stream, times=times, stamps=stamps, duration=duration, readable=share, proven=True)


def _sparse(container: Any, video: Any, stream: Stream, wanted: Collection[int], threads: int) -> Iterator[Any]:
    """The frames of the stretches that hold ``wanted``, and no others of the file."""
    context = video.codec_context
    context.thread_type, context.thread_count = "AUTO", threads
    asked = frozenset(wanted)
    runs = iter(plan_runs(stream.packets, asked))
    first, last = next(runs)
    for number, packet in enumerate(scan.demuxed(container, video)):
        if number < first:
            continue
        context.skip_frame = "DEFAULT" if packet.pts in asked else "NONREF"
        yield from scan.decoded(context, packet)
        if number == last:
            yield from scan.decoded(context, None)
            context.flush_buffers()
            first, last = next(runs, (len(stream.packets), len(stream.packets)))
            if first == len(stream.packets):
                return


def _all(container: Any, video: Any) -> Iterator[Any]:
    """Every frame that decodes, by one thread: with several, a broken packet may take its neighbours along."""
    context = video.codec_context
    context.thread_count = 1
    for packet in scan.demuxed(container, video):
        yield from scan.decoded(context, packet)
    yield from scan.decoded(context, None)


def _by_order(container: Any, video: Any, wanted: set[int], threads: int) -> Iterator[tuple[int, Any]]:
    """Frames by their place in the order in which they come out."""
    context = video.codec_context
    context.thread_type, context.thread_count = "AUTO", threads
    number = 0
    for packet in chain(scan.demuxed(container, video), (None,)):
        for frame in scan.decoded(context, packet):
            if number in wanted:
                yield number, frame
            number += 1
            if number > max(wanted):
                return
