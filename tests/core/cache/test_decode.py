"""Decoded frames against the ffmpeg command, and few frames against one pass over all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import av
import numpy as np
import pytest
from attrs import evolve

from evr1_core.cache import decode
from evr1_core.cache.resize import Converter
from evr1_core.cache.runs import plan_runs
from evr1_core.cache.scan import Packet, Stream, scan
from evr1_core.cache.turn import Turn, turn_of

FILMS = [
    *("base.mp4", "vfr.mp4", "edited.mp4", "rot90.mp4", "offset.mkv", "nopts.avi", "raw.h264", "av1.mp4", "hevc8.mp4", "gray.mkv"),
    *("alpha.webm", "oddsize.mp4", "keys.mp4", "open_gop.mp4", "refresh.mp4", "hevc_open.mp4", "longgop.mp4", "full_range.mkv"),
    "bt709.mp4",
]
SPARSE = (0, 7, 8, 59, 60, 61, 119, 150, 239)


def shown_by_ffmpeg(path: Path, height: int, width: int) -> np.ndarray:
    """Every frame as the ffmpeg command shows it, upright RGB."""
    words = ["-map", "0:v:0", "-f", "rawvideo", "-pix_fmt", "rgb24", "-fps_mode", "passthrough", "-"]
    out = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-i", str(path), *words], capture_output=True, check=True)
    return np.frombuffer(out.stdout, np.uint8).reshape(-1, height, width, 3)


def decoded(path: Path, stream: Stream, numbers, threads: int = 0) -> dict[int, np.ndarray]:
    convert = Converter(stream.height, stream.width, stream.turn)
    found = decode.frames(str(path), stream, numbers, threads=threads)
    return {number: convert(frame).permute(1, 2, 0).numpy().copy() for number, frame in found}


@pytest.mark.parametrize("name", FILMS)
def test_the_frames_that_ffmpeg_shows(films, name):
    stream = scan(str(films / name))
    expected = shown_by_ffmpeg(films / name, stream.height, stream.width)
    assert len(stream.times) == len(expected)
    numbers = [number for number in SPARSE if number < len(expected)]
    found = decoded(films / name, stream, numbers)
    assert sorted(found) == numbers
    for number in numbers:
        np.testing.assert_array_equal(found[number], expected[number], err_msg=f"frame {number}")


@pytest.mark.parametrize("name", ["keys.mp4", "open_gop.mp4", "hevc_open.mp4", "longgop.mp4"])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_frame_alone_is_the_same(films, name, threads):
    stream = scan(str(films / name))
    numbers = range(0, 120, 9)
    together = decoded(films / name, evolve(stream, proven=True), numbers)
    for number in numbers:
        np.testing.assert_array_equal(decoded(films / name, stream, [number], threads)[number], together[number])


def test_seeking_is_chosen_where_it_saves_work(films):
    keys, long = (scan(str(films / name)) for name in ("keys.mp4", "longgop.mp4"))
    wanted = [keys.stamps[number] for number in (0, 150, 300)]
    cost = sum(last - first + 1 for first, last in plan_runs(keys.packets, wanted))
    assert cost < 70  # 1, and what lies between 150 and 300 and their key frames at 120 and 300 - of 360
    assert len(plan_runs(long.packets, [long.stamps[number] for number in (0, 150, 300)])) == 1


def packets(text: str) -> list[Packet]:
    """``I0 P3 B1 B2``: kind and time in file order."""
    return [Packet(stamp=int(word[1:]), key=word[0] == "I") for word in text.split()]


def test_stretches_by_hand():
    closed = packets(" ".join(f"I{10 * n} " + " ".join(f"P{10 * n + k}" for k in range(1, 10)) for n in range(4)))
    assert plan_runs(closed, {0}) == [(0, 0)]
    assert plan_runs(closed, {35}) == [(30, 35)]
    assert plan_runs(closed, {2, 35}) == [(0, 2), (30, 35)]
    assert plan_runs(closed, {2, 11}) == [(0, 2), (10, 11)] or plan_runs(closed, {2, 11}) == [(0, 11)]
    assert plan_runs(closed, {9, 10}) == [(0, 10)]


def test_a_frame_before_its_key_frame_needs_the_group_before():
    opened = packets("I0 P3 B1 B2 I6 B4 B5 P9 B7 B8")
    assert plan_runs(opened, {4}) == [(0, 5)]
    assert plan_runs(opened, {7}) == [(4, 8)]


def test_a_film_that_starts_amid_a_group():
    assert plan_runs(packets("P1 P2 I3 P4"), {2}) == [(0, 1)]


MATRICES = {  # (a, b, c, d) of x' = a x + c y, y' = b x + d y
    "as it is": (1, 0, 0, 1),
    "mirrored": (-1, 0, 0, 1),
    "overturned": (1, 0, 0, -1),
    "by 180": (-1, 0, 0, -1),
    "by 90": (0, 1, -1, 0),
    "by 270": (0, -1, 1, 0),
    "swapped": (0, 1, 1, 0),
    "swapped and by 180": (0, -1, -1, 0),
}


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_every_direction_as_ffmpeg_shows_it(films, tmp_path, matrix):
    a, b, c, d = (value << 16 for value in matrix)
    path = tmp_path / "turned.mp4"
    with av.open(str(films / "base.mp4")) as source, av.open(str(path), "w") as target:
        copy = target.add_stream_from_template(source.streams.video[0])
        copy.set_display_matrix((a, b, 0, c, d, 0, 0, 0, 1 << 30))
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = copy
                target.mux(packet)
    stream = scan(str(path))
    assert (stream.height, stream.width) == ((240, 320) if matrix[0] else (320, 240))
    expected = shown_by_ffmpeg(path, stream.height, stream.width)
    np.testing.assert_array_equal(decoded(path, stream, [40])[40], expected[40])


def test_turning_by_hand():
    picture = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    assert Turn()(picture) is picture
    assert Turn(swap=True)(picture)[..., 0].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert Turn(mirror=True, overturn=True)(picture)[..., 0].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert turn_of(av.VideoFrame(16, 16, "rgb24")) == Turn()


def test_proving_counts_what_decodes(films):
    stream = scan(str(films / "hole.mp4"))
    proven = decode.prove(str(films / "hole.mp4"), stream)
    assert len(proven.times) < len(stream.times)
    assert {round(30 * time) for time in proven.times} < {round(30 * time) for time in stream.times}
    assert sorted(decoded(films / "hole.mp4", proven, range(len(proven.times)))) == list(range(len(proven.times)))
