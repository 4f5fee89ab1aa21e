"""Numbers of frames and their sizes, against the worked ones of the published utility (qwen-vl-utils 0.0.14)."""

from __future__ import annotations

import pytest

from evr1_core.api import MediaError, PatchGrid
from evr1_core.cache.plan import choose, fit, frame_limits, num_frames, tokens
from evr1_core.config.schema import FramesConfig

GRID = PatchGrid(patch=16, merge=2, temporal=2)


@pytest.mark.parametrize(
    ("frames", "total", "cap"), [(256, 33_554_432, 262_144), (1024, 33_554_432, 137_625), (2048, 164_225_024, 160_376)]
)
def test_the_total_is_shared_out(frames, total, cap):
    assert frame_limits(frames, FramesConfig(video_total_pixels=total), GRID) == (131_072, cap)


def test_256_full_frames_make_32768_tokens():
    assert tokens(256, 512, 512, GRID) == 32_768


@pytest.mark.parametrize(
    ("duration", "available", "options", "expected"),
    [
        (10.0, 300, {}, 20),
        (10.5, 300, {}, 20),  # 21, made even
        (0.5, 15, {}, 4),  # the minimum
        (0.1, 3, {}, 2),  # no more than there are, made even
        (0.04, 1, {}, 2),  # a single frame is shown twice
        (1000.0, 30_000, {}, 256),
        (10.0, 300, {"video_fps": 0.5}, 4),
        (10.0, 300, {"video_frames": 7}, 7),
        (10.0, 5, {"video_frames": 7}, 5),
    ],
)
def test_number_of_frames(duration, available, options, expected):
    assert num_frames(duration, available, FramesConfig(**options)) == expected


def test_frames_are_nearest_to_even_times():
    times = [0.0, 0.1, 0.2, 1.0, 1.1, 2.0, 3.0]  # variable rate
    assert choose(times, 4) == [0, 3, 5, 6]
    assert choose([i / 30 for i in range(91)], 4) == [0, 30, 60, 90]


def test_no_frame_is_taken_twice_unless_there_are_too_few():
    assert choose([0.0, 0.01, 0.02, 10.0], 4) == [0, 1, 2, 3]
    assert choose([0.0, 9.9, 10.0], 3) == [0, 1, 2]
    assert choose([0.0], 2) == [0, 0]
    for count in range(2, 9):
        chosen = choose([0.0, 0.1, 0.2, 0.3, 5.0, 9.8, 9.9, 10.0], count)
        assert chosen == sorted(set(chosen))


def test_sizes_keep_the_shape():
    assert fit(720, 1280, 131_072, 262_144, 32, "x") == (384, 672)
    assert fit(100, 100, 131_072, 262_144, 32, "x") == (384, 384)
    assert fit(16, 16, 4, 9216, 32, "x") == (32, 32)
    with pytest.raises(MediaError, match="200 times"):
        fit(8, 2000, 131_072, 262_144, 32, "strip.mp4")
