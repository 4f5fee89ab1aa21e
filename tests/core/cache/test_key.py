"""Every part of a key, one at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from evr1_core.api import Media, MediaError, PatchGrid
from evr1_core.cache.key import entry_key
from evr1_core.config.schema import FramesConfig

GRID = PatchGrid(patch=16, merge=2, temporal=2)
FRAMES = FramesConfig()


@pytest.fixture
def media(tmp_path: Path) -> Media:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.mp4").write_bytes(b"film")
    return Media(kind="video", path=str(tmp_path / "data" / "x.mp4"))


def key(media: Media, frames=FRAMES, grid=GRID, root=None, identity="stat") -> str:
    return entry_key(media, frames, grid, root=root, identity=identity)


def test_it_is_a_hash(media):
    assert len(key(media)) == 64
    assert key(media) == key(media)


@pytest.mark.parametrize(
    "change",
    [
        {"video_fps": 1.0},
        {"video_frames": 8},
        {"video_min_frames": 6},
        {"video_max_frames": 128},
        {"video_min_pixels": 4096},
        {"video_max_pixels": 65_536},
        {"video_total_pixels": 1_000_000},
    ],
)
def test_every_limit_counts(media, change):
    assert key(media, FramesConfig(**change)) != key(media)


def test_limits_of_the_other_kind_do_not(media):
    other = FramesConfig(image_max_pixels=4096, video_min_readable=0.9)
    assert key(media, other) == key(media)
    image = evolve(media, kind="image")
    assert key(image, FramesConfig(video_fps=1.0)) == key(image)
    assert key(image, FramesConfig(image_max_pixels=4096)) != key(image)
    assert key(image) != key(media)


def test_span_and_grid_count(media):
    spans = [None, (0, 1), (0, 2), (1, 2)]
    assert len({key(evolve(media, span=span)) for span in spans}) == 4
    assert key(evolve(media, span=(0, 1))) == key(evolve(media, span=(0.0, 1.0)))
    grids = [GRID, PatchGrid(patch=14, merge=2, temporal=2), PatchGrid(patch=16, merge=1, temporal=2)]
    assert len({key(media, grid=grid) for grid in grids}) == 3


def test_path_size_and_time_of_change_count(media, tmp_path):
    first = key(media)
    os.utime(media.path, ns=(0, 1))
    second = key(media)
    os.utime(media.path, ns=(0, 2))
    assert len({first, second, key(media)}) == 3
    (tmp_path / "data" / "y.mp4").write_bytes(b"film")
    os.utime(tmp_path / "data" / "y.mp4", ns=(0, 2))
    assert key(Media(kind="video", path=str(tmp_path / "data" / "y.mp4"))) != key(media)


def test_a_tree_may_move_with_its_root(media, tmp_path):
    os.utime(media.path, ns=(0, 7))
    before = key(media, root=tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    moved = Media(kind="video", path=str(tmp_path / "elsewhere" / "x.mp4"))
    assert key(moved, root=tmp_path / "elsewhere") == before
    assert key(moved) != before


def test_the_working_directory_does_not_count(media, tmp_path, monkeypatch):
    first = key(media)
    monkeypatch.chdir(tmp_path / "data")
    assert key(media) == first
    assert key(Media(kind="video", path="x.mp4")) == first
    assert key(Media(kind="video", path="./a/../x.mp4".replace("a/../", ""))) == first


def test_content_names_the_same_film_anywhere(media, tmp_path):
    (tmp_path / "copy.mp4").write_bytes(b"film")
    copy = Media(kind="video", path=str(tmp_path / "copy.mp4"))
    assert key(copy, identity="content") == key(media, identity="content")
    (tmp_path / "copy.mp4").write_bytes(b"flim")
    os.utime(tmp_path / "copy.mp4", ns=(0, 5))
    assert key(copy, identity="content") != key(media, identity="content")
    assert key(copy, identity="content") != key(copy)


def test_what_is_not_there(tmp_path):
    with pytest.raises(MediaError, match="no such file"):
        key(Media(kind="video", path=str(tmp_path / "x.mp4")))
    with pytest.raises(MediaError, match="a folder"):
        key(Media(kind="video", path=str(tmp_path)))
    with pytest.raises(MediaError, match="cannot be looked at"):
        key(Media(kind="video", path=str(tmp_path / ("x" * 300))))
