"""Entries on disk: whole or not there, checked, mapped; full and read-only disks."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
import torch

from evr1_core.api import CacheError, Clip, Media, VideoMetadata
from evr1_core.cache.store import DamagedEntryError, check, entries, entry_path, load, save, sweep

KEY = "0123456789abcdef" * 4
SOURCE = {"kind": "video", "path": "a/x.mp4", "span": None}


def clip(count: int = 4, size: int = 64) -> Clip:
    frames = torch.arange(count * 3 * size * size).remainder(251).to(torch.uint8).reshape(count, 3, size, size)
    meta = VideoMetadata(
        fps=30.0,
        total_frames=90,
        duration=3.0,
        indices=tuple(range(count)),
        times=tuple(number / 3 for number in range(count)),
        height=size,
        width=size,
        source_height=100,
        source_width=100,
        readable=0.5,
    )
    return Clip(frames=frames, meta=meta)


def test_what_goes_in_comes_out(tmp_path):
    path = save(tmp_path, KEY, clip(), SOURCE)
    assert path == entry_path(tmp_path, KEY)
    entry = load(path)
    assert torch.equal(entry.clip.frames, clip().frames)
    assert entry.clip.meta == clip().meta
    assert entry.meta["path"] == "a/x.mp4"
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert check(path) is None


def test_the_form_that_is_documented(tmp_path):
    stored = torch.load(save(tmp_path, KEY, clip(), SOURCE), weights_only=True, mmap=True)
    assert set(stored) == {"frames", "meta"}
    assert stored["frames"].dtype == torch.uint8
    assert {"fps", "total_frames", "indices", "times", "height", "width", "duration", "decoder", "format"} <= set(stored["meta"])


def test_an_image_has_no_record_of_times(tmp_path):
    path = save(tmp_path, KEY, Clip(frames=clip(1).frames), {**SOURCE, "kind": "image"})
    assert load(path).clip.meta is None


def test_an_entry_is_hardly_larger_than_its_frames(tmp_path):
    big = clip(64, 256)
    assert save(tmp_path, KEY, big, SOURCE).stat().st_size <= 1.02 * big.frames.numel()


def test_the_same_clip_gives_the_same_bytes(tmp_path):
    first, second = (save(tmp_path / name, KEY, clip(), SOURCE).read_bytes() for name in "ab")
    assert first == second


def test_writing_to_a_mapped_clip_changes_no_entry(tmp_path):
    path = save(tmp_path, KEY, clip(), SOURCE)
    load(path).clip.frames.zero_()
    assert torch.equal(load(path).clip.frames, clip().frames)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped"])
def test_damage_is_found(tmp_path, damage):
    path = save(tmp_path, KEY, clip(), SOURCE)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        place = content.index(clip().frames.numpy().tobytes()[:100]) + 1000
        content[place] ^= 1
        path.write_bytes(content)
        assert "checksum" in check(path)
        return
    path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"no entry"}[damage])
    with pytest.raises(DamagedEntryError, match="damaged"):
        load(path)
    assert "damaged" in check(path)


def test_an_entry_under_another_name(tmp_path):
    path = save(tmp_path, KEY, clip(), SOURCE).rename(tmp_path / f"{'f' * 64}.pt")
    assert "another key" in check(path)


def test_a_damaged_entry_is_decoded_anew(films, small):
    media = Media(kind="video", path=str(films / "base.mp4"))
    cache = small()
    expected = cache.clip(media).frames.clone()
    path = entry_path(cache.folder, cache.key(media))
    path.write_bytes(b"no entry")
    with pytest.raises(CacheError, match="damaged"):
        small(mode="only").clip(media)
    assert torch.equal(small().clip(media).frames, expected)
    assert check(path) is None


def test_leftovers_are_swept_and_living_writers_left_alone(tmp_path):
    dead, alive = tmp_path / f".{KEY}.dead.tmp", tmp_path / f".{KEY}.alive.tmp"
    dead.touch()
    with alive.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert entries(tmp_path) == []
        assert sweep(tmp_path) == 1
        assert not dead.exists()
        assert alive.exists()


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "evr1", place], capture_output=True).returncode
    ):
        pytest.skip("only those who may mount can make a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk(tiny_disk, tmp_path):
    kept = save(tiny_disk, KEY, clip(4, 128), SOURCE)
    with pytest.raises(CacheError, match="no room left"):
        save(tiny_disk, "f" * 64, clip(32, 128), SOURCE)
    assert [path.name for path in tiny_disk.iterdir()] == [kept.name]
    assert check(kept) is None


def test_a_full_disk_under_the_cache(tiny_disk, films, small, monkeypatch):
    cache = small(video_frames=16, video_min_pixels=262_144, video_max_pixels=262_144)
    monkeypatch.setattr(cache, "folder", tiny_disk)
    with pytest.raises(CacheError, match="no room left"):
        cache.clip(Media(kind="video", path=str(films / "base.mp4")))
    assert list(tiny_disk.iterdir()) == []


def test_a_read_only_cache_gives_what_it_has_and_decodes_the_rest(tiny_disk, films, small, monkeypatch):
    there, missing = (Media(kind="video", path=str(films / name)) for name in ("tiny16.mp4", "one_frame.mp4"))
    cache = small()
    expected = cache.clip(missing).frames
    monkeypatch.setattr(cache, "folder", tiny_disk)
    cache.clip(there)
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    assert len(cache.clip(there).frames) == 4
    assert torch.equal(cache.clip(missing).frames, expected)
    assert len(entries(tiny_disk)) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="cannot write"):
        save(tmp_path / "file" / "cache", KEY, clip(), SOURCE)
