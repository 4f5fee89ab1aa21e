"""Numbers of frames and their sizes, against the worked ones of the published utility (qwen-vl-utils 0.0.14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api import MediaError, PatchGrid
from evr1_core.cache.plan import choose, fit, frame_limits, image_size, num_frames, padded, tokens, video_size
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
        (3.9999999, 120, {}, 8),  # 4 s in binary fractions
        (3.967, 119, {}, 6),  # 7.9 is not 8
        (0.5, 15, {}, 4),  # the minimum
        (0.5, 15, {"video_min_frames": 5}, 6),  # the minimum, made even
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


def test_ties_go_to_the_even_number():
    """As torch.round does with the published indices: 1.5 and 2.5 are both 2."""
    assert choose([float(number) for number in range(5)], 3) == [0, 2, 4]
    assert choose([0.0, 1.0, 2.0, 3.0], 3) == [0, 2, 3]
    assert choose([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 3) == [0, 2, 5]


@pytest.mark.parametrize(("chosen", "temporal", "expected"), [([0, 1, 2], 2, [0, 1, 2, 2]), ([0, 1], 2, [0, 1]), ([5], 4, [5] * 4)])
def test_padding_fills_temporal_patches(chosen, temporal, expected):
    assert padded(chosen, PatchGrid(patch=16, merge=2, temporal=temporal)) == expected


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=60, unique=True), st.integers(1, 80))
def test_choices_are_ascending_near_and_without_repeats(ticks, count):
    times = [tick / 100 for tick in sorted(ticks)]
    chosen = choose(times, count)
    assert len(chosen) == count
    distinct = min(count, len(times))
    assert chosen[:distinct] == sorted(set(chosen))
    assert chosen[distinct:] == [chosen[distinct - 1]] * (count - distinct)
    if count > 1:
        assert (chosen[0], chosen[-1]) == (0, len(times) - 1)


def test_small_limits_are_kept_exactly():
    """The demo's frames are 64 x 64, far below the default minimum."""
    config = FramesConfig(video_min_pixels=1024, video_max_pixels=4096)
    assert frame_limits(8, config, GRID) == (1024, 4096)
    assert video_size(64, 64, 8, config, GRID, "x") == (64, 64)
    assert video_size(720, 1280, 8, FramesConfig(video_max_pixels=4096), GRID, "x") == (32, 64)
    assert image_size(64, 64, FramesConfig(image_min_pixels=1024, image_max_pixels=4096), GRID, "x") == (64, 64)


def test_images_have_limits_of_their_own():
    assert image_size(3000, 4000, FramesConfig(), GRID, "x") == (864, 1152)
    assert image_size(3000, 4000, FramesConfig(video_max_pixels=4096), GRID, "x") == (864, 1152)
    assert image_size(10, 10, FramesConfig(), GRID, "x") == (64, 64)  # 4 tokens


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
