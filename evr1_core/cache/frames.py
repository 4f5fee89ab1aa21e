"""Decoded media by key: the cache that training, rollout and evaluation share."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from attrs import asdict, frozen
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as transforms

from evr1_core.api import Clip, Media, MediaError, PatchGrid, VideoMetadata
from evr1_core.cache import decode
from evr1_core.cache.plan import Plan, choose, image_size, num_frames, tokens, video_size
from evr1_core.config.schema import CacheConfig, FramesConfig

FORMAT = 1


@frozen(kw_only=True, eq=False)
class _Planned:
    plan: Plan
    meta: VideoMetadata | None


class FrameCache:
    """Clips of media files, decoded once for each distinct file, span and frame budget."""

    def __init__(self, cache: CacheConfig, frames: FramesConfig, grid: PatchGrid, *, media_root: Path, folder: Path) -> None:
        self._cache, self._frames, self._grid = cache, frames, grid
        self._root, self._folder = media_root.absolute(), folder

    def clip(self, media: Media) -> Clip:
        """The frames of a file. Raises MediaError, and FileNotFoundError's kind ``missing`` under ``cache.mode: only``."""
        entry = self._folder / f"{self.key(media)}.pt"
        if self._cache.mode != "off" and entry.is_file():
            return _load(entry)
        if self._cache.mode == "only":
            raise MediaError(
                media.path, "not_cached", f"has no entry in {self._folder}; run `evr1 cache build`, or cache.mode: prefer"
            )
        clip = self._decoded(media)
        if self._cache.mode == "prefer":
            _store(clip, entry)
            return _load(entry)
        return clip

    def holds(self, media: Media) -> bool:
        """The frames are stored, so that the file was readable. Raises MediaError when it is gone."""
        return self._cache.mode != "off" and (self._folder / f"{self.key(media)}.pt").is_file()

    def plan(self, media: Media) -> Plan:
        """Frames, size and tokens that a file will have."""
        return self._planned(media).plan

    def key(self, media: Media) -> str:
        """Names the entry of a file under these settings: a changed file or setting never meets an old entry."""
        path = Path(media.path)
        try:
            status = path.stat()
        except OSError as error:
            raise MediaError(media.path, "missing", f"cannot be read ({error.strerror})") from error
        absolute = path.absolute()
        inside = absolute.is_relative_to(self._root)
        identity = [str(absolute.relative_to(self._root) if inside else absolute), status.st_size, status.st_mtime_ns]
        parts = [FORMAT, media.kind, identity, media.span, asdict(self._frames), asdict(self._grid)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _planned(self, media: Media) -> _Planned:
        if media.kind == "image":
            picture = _picture(media.path)
            height, width = image_size(picture.shape[1], picture.shape[2], self._frames, self._grid, media.path)
            plan = Plan(num_frames=1, height=height, width=width, num_tokens=tokens(1, height, width, self._grid))
            return _Planned(plan=plan, meta=None)
        stream = decode.scan(media.path)
        low, high = media.span or (0.0, stream.duration)
        inside = [number for number, time in enumerate(stream.times) if low - 1e-6 <= time < high or time == low]
        if not inside:
            raise MediaError(
                media.path, "empty_span", f"has no frame between {low:g} and {high:g} s; it is {stream.duration:g} s long"
            )
        times = [stream.times[number] for number in inside]
        length = min(high, stream.duration) - low
        count = num_frames(length, len(inside), self._frames)
        kept = choose(times, count)
        height, width = video_size(stream.height, stream.width, count, self._frames, self._grid, media.path)
        meta = VideoMetadata(
            fps=stream.fps,
            total_frames=len(inside),
            duration=length,
            indices=tuple(inside[place] for place in kept),
            times=tuple(times[place] - times[0] for place in kept),
            height=height,
            width=width,
            source_height=stream.height,
            source_width=stream.width,
        )
        plan = Plan(num_frames=count, height=height, width=width, num_tokens=tokens(count, height, width, self._grid))
        return _Planned(plan=plan, meta=meta)

    def _decoded(self, media: Media) -> Clip:
        planned = self._planned(media)
        plan = planned.plan
        if planned.meta is None:
            return Clip(frames=_resized(_picture(media.path).unsqueeze(0), plan.height, plan.width))
        pictures = decode.decode(media.path, planned.meta.indices)
        frames = [
            _resized(torch.from_numpy(picture).permute(2, 0, 1).unsqueeze(0), plan.height, plan.width) for picture in pictures
        ]
        return Clip(frames=torch.cat(frames), meta=planned.meta)


def _resized(frames: Tensor, height: int, width: int) -> Tensor:
    """uint8 ``[T, 3, height, width]``, bicubic with antialias."""
    out: Tensor = transforms.resize(frames, [height, width], interpolation=InterpolationMode.BICUBIC, antialias=True)
    return out.contiguous()


def _picture(path: str) -> Tensor:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return transforms.pil_to_tensor(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise MediaError(path, "undecodable", f"no readable image ({error})") from error


def _store(clip: Clip, entry: Path) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    temporary = entry.with_name(f".{entry.name}.{os.getpid()}")
    meta = asdict(clip.meta) if clip.meta is not None else None
    try:
        with temporary.open("wb") as file:
            torch.save({"format": FORMAT, "frames": clip.frames, "meta": meta}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(entry)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise MediaError(str(entry), "cache_write", f"the cache entry cannot be written ({error.strerror})") from error


def _load(entry: Path) -> Clip:
    stored: dict[str, Any] = torch.load(entry, weights_only=True, mmap=True)
    meta = stored["meta"]
    if meta is None:
        return Clip(frames=stored["frames"])
    return Clip(
        frames=stored["frames"], meta=VideoMetadata(**{**meta, "indices": tuple(meta["indices"]), "times": tuple(meta["times"])})
    )
