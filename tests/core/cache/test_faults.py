"""Every known fault of media files: the right frames where they can be had, one typed error where not.

The test card of ffmpeg shows the second in large figures, and its colours are known: what a frame shows tells its time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from evr1_core.api import Media, MediaError


def video(folder: Path, name: str, span: tuple[float, float] | None = None) -> Media:
    return Media(kind="video", path=str(folder / name), span=span)


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """Mean absolute difference, in levels of 255."""
    return float((a.float() - b.float()).abs().mean())


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("audio_only.mp4", "no_video_stream", "no video stream"),
        ("cover.mp4", "no_video_stream", "no video stream"),
        ("no_moov.mp4", "undecodable", "index is lost"),
        ("zero.mp4", "empty", "is empty"),
        ("html.mp4", "undecodable", "no media file"),
        ("strip.mp4", "too_thin", "200 times"),
        ("dangling.mp4", "missing", "link to nothing"),
        ("missing.mp4", "missing", "no such file"),
        ("folder.mp4", "no_file", "is a folder"),
    ],
)
def test_one_typed_error_that_names_file_and_reason(films, small, name, kind, reason):
    cache = small()
    for action in (cache.clip, cache.plan, cache.store):
        with pytest.raises(MediaError, match=reason) as caught:
            action(video(films, name))
        assert (caught.value.kind, caught.value.path) == (kind, str(films / name))
    assert not list(cache.folder.glob("*"))  # nothing is stored as done


def test_a_file_that_may_not_be_read(films, small, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("to root every file is readable")
    (tmp_path / "x.mp4").write_bytes((films / "base.mp4").read_bytes())
    (tmp_path / "x.mp4").chmod(0)
    with pytest.raises(MediaError, match="may not be read"):
        small().clip(video(tmp_path, "x.mp4"))


def test_variable_rate_is_sampled_by_time(films, small):
    meta = small(video_fps=4).clip(video(films, "vfr.mp4")).meta
    assert meta.total_frames == 50
    # the film keeps every second frame of the first two seconds and every third of the rest, of 30 a second
    kept = [n / 30 for n in range(60) if n % 2 == 0] + [n / 30 for n in range(60, 120) if n % 3 == 0]
    assert meta.times == pytest.approx([kept[index] for index in meta.indices])
    gaps = [after - before for before, after in zip(meta.times, meta.times[1:], strict=False)]
    assert max(gaps) < 0.4  # even in time: with even indices, the second half would have larger steps than the first
    assert min(gaps) > 0.15


def test_rotation_is_applied(films, small):
    flat, turned = (small().clip(video(films, name)) for name in ("base.mp4", "rot90.mp4"))
    assert (turned.meta.source_height, turned.meta.source_width) == (320, 240)
    assert (turned.meta.height, turned.meta.width) == (flat.meta.width, flat.meta.height)
    # the direction is ffmpeg's own: test_decode.py compares with what it shows
    assert difference(turned.frames, torch.rot90(flat.frames, k=1, dims=(2, 3))) < 1.0


def test_a_single_frame_is_repeated(films, small):
    clip = small().clip(video(films, "one_frame.mp4"))
    assert (clip.meta.indices, clip.meta.times, clip.meta.total_frames) == ((0, 0), (0.0, 0.0), 1)
    assert torch.equal(clip.frames[0], clip.frames[1])


def test_an_odd_number_is_padded_by_the_last_frame(films, small):
    clip = small(video_frames=7).clip(video(films, "odd7.mp4"))
    assert clip.meta.indices == (0, 1, 2, 3, 4, 5, 6, 6)
    assert len(clip.meta.times) == len(clip.frames) == 8
    assert torch.equal(clip.frames[6], clip.frames[7])
    assert small(video_frames=7).plan(video(films, "odd7.mp4")).num_frames == 8


def test_fewer_frames_than_asked_for(films, small):
    short = small().clip(video(films, "short03.mp4")).meta
    assert short.indices == (0, 3, 5, 8)
    assert small(video_frames=64).clip(video(films, "short03.mp4")).meta.indices == (*range(9), 8)
    assert small(video_fps=100).clip(video(films, "short03.mp4")).meta.indices == (0, 1, 2, 3, 5, 6, 7, 8)


@pytest.mark.parametrize(
    ("name", "share", "seconds"), [("trunc_faststart.mp4", 50 / 120, 49 / 30), ("trunc.avi", 94 / 120, 93 / 30)]
)
def test_what_is_left_of_a_cut_file_is_used_and_said(films, small, name, share, seconds):
    meta = small().clip(video(films, name)).meta
    assert meta.readable == pytest.approx(share, abs=2.1 / 120)  # encoders write a few bytes more or less by the kind of CPU
    assert meta.times[-1] == pytest.approx(seconds, abs=6.1 / 30)  # B-frames behind the cut may lack what they refer to
    strict = small(video_min_readable=0.9)
    for action in (strict.clip, strict.plan):
        with pytest.raises(MediaError, match="of the promised frames") as caught:
            action(video(films, name))
        assert caught.value.kind == "truncated"


def test_a_hole_costs_the_frames_in_it_and_moves_no_other(films, small):
    whole, broken = (small(video_fps=30).clip(video(films, name)) for name in ("base.mp4", "hole.mp4"))
    assert broken.meta.readable == pytest.approx(89 / 120, abs=0.02)
    places = [whole.meta.times.index(pytest.approx(time)) for time in broken.meta.times]
    assert torch.equal(broken.frames[:20], whole.frames[places[:20]])  # before the hole


@pytest.mark.parametrize(
    ("name", "count"), [("av1.mp4", 15), ("alpha.webm", 30), ("nodur.webm", 120), ("interlaced.mpg", 60), ("raw.h264", 120)]
)
def test_codecs_and_containers(films, small, name, count):
    clip = small().clip(video(films, name))
    assert clip.meta.total_frames == count
    assert clip.frames.shape[1] == 3
    assert clip.frames.float().std() > 60  # a test card and no noise, no grey
    assert not torch.equal(clip.frames[0], clip.frames[-1])


def test_ten_bits_look_like_eight(films, small):
    ten, eight = (small().clip(video(films, name)).frames for name in ("hevc10.mp4", "hevc8.mp4"))
    assert difference(ten, eight) < 3.0


def test_grey_has_three_channels(films, small):
    frames = small().clip(video(films, "gray.mkv")).frames
    assert frames.shape[1] == 3
    assert torch.equal(frames[:, 0], frames[:, 1])
    assert torch.equal(frames[:, 0], frames[:, 2])


def test_times_count_from_the_first_shown_frame(films, small):
    base, late = (small().clip(video(films, name, (0.0, 1.0))) for name in ("base.mp4", "offset.mkv"))
    assert late.meta.times == pytest.approx(base.meta.times, abs=1e-3)  # Matroska rounds to milliseconds
    assert torch.equal(late.frames, base.frames)


def test_an_edit_list_hides_frames(films, small):
    base, edited = (small(video_fps=30).clip(video(films, name)) for name in ("base.mp4", "edited.mp4"))
    assert (edited.meta.total_frames, edited.meta.duration) == (75, pytest.approx(2.5))
    assert edited.meta.times[0] == 0.0
    assert torch.equal(edited.frames[0], base.frames[45])  # cut in at 1.5 s


@pytest.mark.parametrize("name", ["nopts.avi", "raw.h264"])
def test_no_time_stamps(films, small, name):
    clip, base = (small().clip(video(films, each)) for each in (name, "base.mp4"))
    assert clip.meta.times == pytest.approx(base.meta.times)
    assert difference(clip.frames, base.frames) < 4.0


def test_a_high_rate_keeps_times_apart(films, small):
    meta = small(video_fps=240, video_max_frames=480).clip(video(films, "fps240.mp4")).meta
    assert len(meta.indices) == 480
    assert len({round(1000 * time) for time in meta.times}) == 480  # processors count in milliseconds


@pytest.mark.parametrize(("name", "size"), [("tiny16.mp4", (32, 32)), ("oddsize.mp4", (96, 96))])
def test_sides_are_multiples_of_a_patch(films, small, name, size):
    assert tuple(small().clip(video(films, name)).frames.shape[2:]) == size


def test_pixels_that_are_not_square(films, small):
    base, wide = (small().clip(video(films, name)) for name in ("base.mp4", "sar2.mp4"))
    assert (wide.meta.source_height, wide.meta.source_width) == (240, 640)
    assert wide.meta.width / wide.meta.height == pytest.approx(2 * base.meta.width / base.meta.height, rel=0.2)


def test_any_file_name(films, small):
    odd = next(path for path in films.iterdir() if "%20" in path.name)
    base = small().clip(video(films, "base.mp4"))
    assert torch.equal(small().clip(video(films, odd.name)).frames, base.frames)


def test_names_that_differ_by_case_alone(films, small):
    first, second = (small().clip(video(films, name)) for name in ("a/x.mp4", "A/x.mp4"))
    assert (first.meta.total_frames, second.meta.total_frames) == (120, 50)


@pytest.mark.parametrize("identity", ["stat", "content"])
def test_a_changed_file_never_meets_the_old_entry(films, small, tmp_path, identity):
    (tmp_path / "x.mp4").write_bytes((films / "base.mp4").read_bytes())
    cache = small(identity=identity)
    assert cache.clip(video(tmp_path, "x.mp4")).meta.total_frames == 120
    (tmp_path / "x.mp4").write_bytes((films / "vfr.mp4").read_bytes())
    assert cache.clip(video(tmp_path, "x.mp4")).meta.total_frames == 50


@pytest.mark.parametrize("name", ["base.mp4", "vfr.mp4", "rot90.mp4", "trunc.avi", "hole.mp4", "sar2.mp4", "raw.h264"])
def test_the_same_bytes_cached_and_not(films, small, name):
    stored, direct = (small(mode=mode).clip(video(films, name)) for mode in ("prefer", "off"))
    read = small(mode="only").clip(video(films, name))
    assert torch.equal(stored.frames, direct.frames)
    assert torch.equal(stored.frames, read.frames)
    assert stored.meta == direct.meta == read.meta


def test_a_playlist_may_not_reach_out(small, tmp_path):
    (tmp_path / "x.mp4").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n")
    with pytest.raises(MediaError):
        small().clip(video(tmp_path, "x.mp4"))
