"""A tiny model and made-up clips, shared by tests."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

import torch

from evr1_core.api import Clip, VideoMetadata
from evr1_core.registry.loading import load_class, resolve

PREFIX = "evr1-tiny-"


@functools.cache
def tiny_folder(family: str = "qwen3_vl") -> Path:
    """A checkpoint folder with random weights, the same for all tests of a process."""
    folder = _folder()
    load_class(resolve("models", family))().tiny(folder, seed=0, width=64, vision_width=64)
    return folder


def _folder() -> Path:
    """A new folder, removed at the end of this process; where that was killed, by the next process that makes one."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = left.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(left, ignore_errors=True)  # another process may be doing the same
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def tiny_model(family: str = "qwen3_vl"):
    """(family, processor, module) of the tiny checkpoint. The module is shared: a test that trains loads its own."""
    from transformers import AutoProcessor

    plugin = load_class(resolve("models", family))()
    folder = tiny_folder(family)
    return plugin, AutoProcessor.from_pretrained(folder), plugin.load(str(folder)).eval()


def image_clip(height: int, width: int, seed: int = 0) -> Clip:
    """A picture of noise."""
    return Clip(frames=_noise(1, height, width, seed))


def video_clip(num_frames: int, height: int, width: int, *, times: tuple[float, ...] | None = None, seed: int = 0) -> Clip:
    """A video of noise at two frames a second."""
    times = times or tuple(index / 2 for index in range(num_frames))
    meta = VideoMetadata(
        fps=2.0,
        total_frames=num_frames,
        duration=num_frames / 2,
        indices=tuple(range(num_frames)),
        times=times,
        height=height,
        width=width,
        source_height=height,
        source_width=width,
    )
    return Clip(frames=_noise(num_frames, height, width, seed), meta=meta)


def _noise(num_frames: int, height: int, width: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (num_frames, 3, height, width), dtype=torch.uint8, generator=generator)
