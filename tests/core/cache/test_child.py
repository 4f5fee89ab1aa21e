"""Decoders that hang, crash or eat memory are killed and replaced, and only their file is lost."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import pytest
import torch

from evr1_core.api import Media, MediaError, PatchGrid
from evr1_core.cache import child
from evr1_core.cache.child import Decoders, Order
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import CacheConfig, FramesConfig

GRID = PatchGrid(patch=16, merge=2, temporal=2)
FRAMES = FramesConfig(video_min_pixels=1024, video_max_pixels=12_288)


def stubborn(order, memory_mb=0):
    """A decoder with faults, by the name of the file."""
    if order is None:
        return child.serve(None, memory_mb)
    name = Path(order["media"]["path"]).stem
    if name in ("sleeps", "half"):
        if name == "half":
            Path(order["folder"], f".{order['key']}.x.tmp").write_bytes(b"half an entry")
        time.sleep(60)
    if name == "segfaults":
        ctypes.string_at(0)
    if name == "greedy":
        bytearray(4 << 30)
    return child.serve(order) if name == "base" else {"pid": os.getpid()}


def test_running_out_of_memory_is_no_fault_of_a_packet(films, tmp_path):
    """A real film under a limit that its frames exceed."""
    big = FramesConfig(video_frames=120, video_min_pixels=4_000_000, video_max_pixels=4_000_000)
    tight = Decoders(time_limit=60.0, memory_mb=600)
    work = Order(
        do="store", media=Media(kind="video", path=str(films / "base.mp4")), frames=big, grid=GRID, folder=str(tmp_path), key="k"
    )
    try:
        with pytest.raises(MediaError, match="more than 600 MB") as caught:
            tight.do(work)
    finally:
        tight.close()
    assert caught.value.kind == "memory"
    assert list(tmp_path.iterdir()) == []


def order(path: Path | str, **more) -> Order:
    return Order(do="plan", media=Media(kind="video", path=str(path)), frames=FRAMES, grid=GRID, **more)


@pytest.fixture(scope="module")
def decoders():
    own = Decoders(time_limit=1.5, memory_mb=1024, target=f"{__name__}:stubborn")
    yield own
    own.close()


@pytest.mark.slow
def test_faults_of_a_decoder(decoders, films, tmp_path):
    first = decoders.do(order("good.mp4"))["pid"]
    assert decoders.do(order("good.mp4"))["pid"] == first
    for name, kind in (("sleeps", "timeout"), ("segfaults", "crash"), ("greedy", "memory")):
        with pytest.raises(MediaError) as caught:
            decoders.do(order(f"{name}.mp4"))
        assert (caught.value.kind, caught.value.path) == (kind, f"{name}.mp4")
    assert decoders.do(order("good.mp4"))["pid"] != first
    with pytest.raises(MediaError, match=r"longer than 1\.5 s"):
        decoders.do(order("half.mp4", folder=str(tmp_path), key="k"))
    assert list(tmp_path.iterdir()) == []
    assert decoders.do(order(films / "base.mp4"))["plan"]["num_frames"] == 8


def test_a_child_makes_the_same_frames(films, tmp_path):
    media = Media(kind="video", path=str(films / "base.mp4"), span=(0.5, 3.0))
    made = {}
    for name, mode, isolated in (("a", "prefer", True), ("b", "off", True), ("c", "prefer", False), ("d", "off", False)):
        settings = {"media_root": films, "folder": tmp_path / name, "isolated": isolated}
        cache = FrameCache(CacheConfig(mode=mode), FRAMES, GRID, **settings)
        made[name] = cache.clip(media)
        assert cache.plan(media).num_frames == len(made[name].frames)
    entry = next((tmp_path / "a").glob("*.pt"))
    assert entry.read_bytes() == (tmp_path / "c" / entry.name).read_bytes()
    for clip in made.values():
        assert torch.equal(clip.frames, made["a"].frames)
        assert clip.meta == made["a"].meta
    with pytest.raises(MediaError, match="no media file"):
        FrameCache(CacheConfig(), FRAMES, GRID, media_root=films, folder=tmp_path / "a").clip(Media(kind="video", path="html.mp4"))
