"""Real films through the cache: right frames, right times, one entry for each file and budget."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from evr1_core.api import CacheError, Media, MediaError, PatchGrid
from evr1_core.cache.build import build
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import CacheConfig, FramesConfig

GRID = PatchGrid(patch=16, merge=2, temporal=2)
FRAMES = FramesConfig(video_min_pixels=1024, video_max_pixels=4096)


def film(
    path: Path, *, frames: int = 40, fps: int = 10, size: int = 64, start: float = 0.0, stamps: list[int] | None = None
) -> Media:
    """A film whose n-th frame has brightness 5 n; ``stamps`` are times in ticks of 1 / fps."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"crf": "10"})
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, fps)
        for number, stamp in enumerate(stamps or range(frames)):
            picture = av.VideoFrame.from_ndarray(np.full((size, size, 3), 5 * number, np.uint8), format="rgb24")
            picture.pts = stamp + round(start * fps)
            picture.time_base = Fraction(1, fps)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return Media(kind="video", path=str(path))


def cache(folder: Path, *, mode: str = "prefer", frames: FramesConfig = FRAMES) -> FrameCache:
    return FrameCache(CacheConfig(mode=mode), frames, GRID, media_root=folder, folder=folder / "cache", isolated=False)


def brightness(clip) -> list[int]:
    return [round(float(frame.float().mean()) / 5) for frame in clip.frames]


def test_frames_and_times(tmp_path: Path):
    clip = cache(tmp_path).clip(film(tmp_path / "a.mp4"))
    assert clip.frames.dtype == torch.uint8
    assert tuple(clip.frames.shape) == (8, 3, 64, 64)
    assert clip.meta.indices == (0, 6, 11, 17, 22, 28, 33, 39)
    assert clip.meta.times == pytest.approx([index / 10 for index in clip.meta.indices])
    assert brightness(clip) == list(clip.meta.indices)
    assert (clip.meta.duration, clip.meta.total_frames) == (pytest.approx(4.0), 40)


def test_times_are_presentation_times_of_a_variable_rate(tmp_path: Path):
    stamps = [0, 1, 2, 3, 20, 21, 22, 39]
    clip = cache(tmp_path).clip(film(tmp_path / "vfr.mp4", stamps=stamps))
    assert list(clip.meta.times) == pytest.approx([stamps[index] / 10 for index in clip.meta.indices])
    assert brightness(clip) == list(clip.meta.indices)


def test_a_late_start_counts_from_the_first_shown_frame(tmp_path: Path):
    clip = cache(tmp_path).clip(film(tmp_path / "late.mkv", start=2.5))
    assert clip.meta.times[0] == 0.0
    assert brightness(clip) == list(clip.meta.indices)


def test_a_span_is_cut_out(tmp_path: Path):
    media = film(tmp_path / "a.mp4")
    clip = cache(tmp_path).clip(Media(kind="video", path=media.path, span=(1.0, 3.0)))
    assert clip.meta.indices[0] == 10
    assert clip.meta.indices[-1] == 29
    assert clip.meta.times[0] == 0.0
    assert clip.meta.duration == pytest.approx(2.0)
    with pytest.raises(MediaError, match="no frame between 9 and 10 s"):
        cache(tmp_path).clip(Media(kind="video", path=media.path, span=(9.0, 10.0)))


def test_one_entry_for_each_file_and_budget(tmp_path: Path):
    media = film(tmp_path / "a.mp4")
    own = cache(tmp_path)
    first = own.clip(media)
    assert torch.equal(own.clip(media).frames, first.frames)
    assert own.clip(media).meta == first.meta
    assert len(list((tmp_path / "cache").glob("*.pt"))) == 1
    cache(tmp_path, frames=FramesConfig(video_fps=1.0, video_min_pixels=1024, video_max_pixels=4096)).clip(media)
    assert len(list((tmp_path / "cache").glob("*.pt"))) == 2
    film(tmp_path / "a.mp4", frames=20)
    assert own.clip(media).meta.total_frames == 20


def test_modes_give_the_same_frames(tmp_path: Path):
    media = film(tmp_path / "a.mp4")
    with pytest.raises(CacheError, match="evr1 cache build"):
        cache(tmp_path, mode="only").clip(media)
    direct = cache(tmp_path, mode="off").clip(media)
    assert not (tmp_path / "cache").exists()
    stored = cache(tmp_path).clip(media)
    assert torch.equal(direct.frames, stored.frames)
    assert direct.meta == stored.meta
    assert torch.equal(cache(tmp_path, mode="only").clip(media).frames, direct.frames)


def test_an_image_has_one_frame_and_no_time(tmp_path: Path):
    from PIL import Image

    picture = Image.new("RGB", (100, 50), (10, 200, 30))
    exif = picture.getexif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    picture.save(tmp_path / "a.jpg", exif=exif)
    clip = cache(tmp_path).clip(Media(kind="image", path=str(tmp_path / "a.jpg")))
    assert clip.meta is None
    assert tuple(clip.frames.shape) == (1, 3, 96, 64)  # upright: 100 high, 50 wide
    assert clip.frames[0].float().mean(dim=(1, 2)).tolist() == pytest.approx([10, 200, 30], abs=3)


@pytest.mark.parametrize(
    ("name", "content", "kind", "reason"),
    [
        ("html.mp4", b"<html><body>404</body></html>", "undecodable", "no media file"),
        ("zero.mp4", b"", "empty", "is empty"),
        ("bad.png", b"PNG?", "undecodable", "no readable image"),
    ],
)
def test_what_is_no_media_file_is_said_to_be_none(tmp_path: Path, name, content, kind, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MediaError, match=reason) as caught:
        cache(tmp_path).clip(Media(kind="image" if name.endswith("png") else "video", path=str(tmp_path / name)))
    assert caught.value.kind == kind
    assert name in str(caught.value)
    assert not (tmp_path / "cache").exists()


def test_sound_alone_is_no_video(tmp_path: Path):
    import av

    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(MediaError, match="no video stream"):
        cache(tmp_path).clip(Media(kind="video", path=str(tmp_path / "a.mp4")))


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(MediaError, match="no such file"):
        cache(tmp_path).clip(Media(kind="video", path=str(tmp_path / "nothing.mp4")))


def test_building_lists_failures_and_stores_the_rest(tmp_path: Path):
    (tmp_path / "bad.mp4").write_bytes(b"no film")
    media = [film(tmp_path / "视频 é#%20&.mp4"), Media(kind="video", path=str(tmp_path / "bad.mp4"))]
    good, bad = sorted(build(cache(tmp_path), media, workers=1), key=lambda each: each.media.path, reverse=True)
    assert good.error is None
    assert bad.error.path.endswith("bad.mp4")
    assert cache(tmp_path).holds(media[0])
    assert [path.suffix for path in (tmp_path / "cache").glob("*")] == [".pt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_unwritable_cache_is_said_to_be_one(tmp_path: Path):
    (tmp_path / "cache").mkdir(mode=0o500)
    with pytest.raises(MediaError, match="cannot be written"):
        cache(tmp_path).clip(film(tmp_path / "a.mp4"))
