"""Decoded media by key: the cache that training, rollout and evaluation share."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from attrs import evolve, frozen

from evr1_core.api import CacheError, Clip, ConfigError, Media, PatchGrid, VideoMetadata
from evr1_core.cache.child import Decoders, Do, Order, shared, work
from evr1_core.cache.key import entry_key
from evr1_core.cache.plan import Plan, tokens
from evr1_core.cache.produce import too_broken
from evr1_core.cache.store import DamagedEntryError, Entry, entry_path, load
from evr1_core.cache.uses import Uses, touch
from evr1_core.config.schema import CacheConfig, FramesConfig

_log = logging.getLogger(__name__)

MAX_PLANNED = 10_000  # plans kept in memory, so that a file without an entry is not scanned by each of the checks before a run


@frozen(kw_only=True)
class Stored:
    """``present``: the entry was there before; ``readable``: share of the promised frames in it."""

    present: bool
    readable: float


class FrameCache:
    """Clips of media files, decoded once for each distinct file, span and frame budget.

    ``media_root``: what relative paths are relative to; an empty path: the working directory. ``decoders``: the processes that
    decode; those of this process by default. ``isolated`` False decodes in the calling process, which a broken file may then hang
    or crash: for callers that are disposable themselves. ``threads``: of a decoder; 0 leaves it to FFmpeg.
    """

    def __init__(
        self,
        cache: CacheConfig,
        frames: FramesConfig,
        grid: PatchGrid,
        *,
        media_root: Path,
        folder: Path,
        decoders: Decoders | None = None,
        isolated: bool = True,
        threads: int = 0,
    ) -> None:
        _check_limits(frames)
        self.folder = folder
        self._cache, self._frames, self._grid, self._threads = cache, frames, grid, threads
        self._root = None if media_root == Path() else Path(os.path.abspath(media_root))
        self._decoders, self._isolated = decoders, isolated
        self._uses = Uses(folder)
        self._planned: dict[str, dict[str, Any]] = {}

    def clip(self, media: Media) -> Clip:
        """The frames of a file. Raises MediaError; CacheError when an entry is missing under ``cache.mode: only`` or there is no
        room for one."""
        media = self._placed(media)
        key = self.key(media)
        entry = self._opened(key) if self._cache.mode != "off" else None
        if entry is None:
            entry = self._made(media, key)
        self._check_readable(media, entry)
        return entry.clip

    def holds(self, media: Media) -> bool:
        """The frames are stored, so that the file was readable. Raises MediaError when it is gone."""
        return self._cache.mode != "off" and entry_path(self.folder, self.key(media)).is_file()

    def lacks(self, media: Media) -> bool:
        """The file has no entry and may not get one (``cache.mode: only``)."""
        return self._cache.mode == "only" and not self.holds(media)

    def plan(self, media: Media) -> Plan:
        """Frames, size and tokens that a file will have. Raises MediaError."""
        count, _, height, width = self.outline(media).frames.shape
        return Plan(num_frames=count, height=height, width=width, num_tokens=tokens(count, height, width, self._grid))

    def outline(self, media: Media) -> Clip:
        """The clip of a file without its pixels: frames on torch's ``meta`` device, and the record. Raises MediaError."""
        media = self._placed(media)
        key = self.key(media)
        entry = self._opened(key) if self._cache.mode != "off" else None
        if entry is not None:
            self._check_readable(media, entry)
            return _outline(tuple(entry.clip.frames.shape), entry.clip.meta)
        answer = self._planned.get(key) or self._do(self._order("plan", media, key))
        if len(self._planned) < MAX_PLANNED:
            self._planned[key] = answer
        plan, meta = Plan(**answer["plan"]), answer["meta"]
        if meta is not None:
            meta = VideoMetadata(**{**meta, "indices": tuple(meta["indices"]), "times": tuple(meta["times"])})
        return _outline((plan.num_frames, 3, plan.height, plan.width), meta)

    def key(self, media: Media) -> str:
        """Names the entry of a file under these settings: a changed file or setting never meets an old entry. Raises MediaError."""
        return entry_key(self._placed(media), self._frames, self._grid, root=self._root, identity=self._cache.identity)

    def store(self, media: Media) -> Stored:
        """Decodes and stores a file, unless it is stored already. Raises MediaError and CacheError."""
        media = self._placed(media)
        key = self.key(media)
        with suppress(FileNotFoundError, DamagedEntryError):
            entry = load(entry_path(self.folder, key))
            self._check_readable(media, entry)
            return Stored(present=True, readable=float(entry.meta.get("readable", 1.0)))
        return Stored(present=False, readable=self._stored(media, key, self.folder))

    def _stored(self, media: Media, key: str, folder: Path, *, lasting: bool = True) -> float:
        """Decodes into an entry; the share of the promised frames that could be read."""
        readable: float = self._do(evolve(self._order("store", media, key, folder=folder), lasting=lasting))["readable"]
        if readable < 1:
            _log.warning("%s: only %.0f %% of the promised frames can be read", media.path, 100 * readable)
        return readable

    def _made(self, media: Media, key: str) -> Entry:
        if self._cache.mode == "only":
            raise CacheError(f"{media.path}: has no entry in {self.folder}; run `evr1 cache build`, or set cache.mode: prefer")
        if self._cache.mode == "prefer" and _writable(self.folder):
            self._stored(media, key, self.folder)
            entry = self._opened(key)
            if entry is None:
                raise CacheError(f"{self.folder}: an entry was gone as soon as it was written; is something cleaning up there?")
            return entry
        with tempfile.TemporaryDirectory(prefix="evr1-frames-") as folder:  # a mapped file lives on without its name
            self._stored(media, key, Path(folder), lasting=False)
            return load(entry_path(Path(folder), key))

    def _opened(self, key: str) -> Entry | None:
        path = entry_path(self.folder, key)
        if not path.is_file():
            return None
        self._uses.note(key)
        touch(path)
        try:
            return load(path)
        except FileNotFoundError:  # cleaned away between the two looks
            return None
        except DamagedEntryError as error:
            if self._cache.mode == "only":
                raise
            _log.warning("%s; decoding the file again", error)
            return None

    def _check_readable(self, media: Media, entry: Entry) -> None:
        """An entry may come from a run that asked for less."""
        if entry.clip.meta is not None and entry.clip.meta.readable < self._frames.video_min_readable:
            raise too_broken(media, entry.clip.meta.readable, self._frames)

    def _placed(self, media: Media) -> Media:
        return evolve(media, path=os.path.join(self._root or "", media.path))

    def _order(self, do: Do, media: Media, key: str, *, folder: Path | None = None) -> Order:
        name = os.path.relpath(media.path, self._root) if self._root else media.path
        placed = os.path.abspath(folder) if folder else ""  # the decoders may have another working directory
        return Order(
            do=do,
            media=media,
            frames=self._frames,
            grid=self._grid,
            name=name,
            folder=placed,
            key=key if folder else "",
            threads=self._threads,
        )

    def _do(self, order: Order) -> dict[str, Any]:
        if not self._isolated:
            return work(order)
        return (self._decoders or shared(self._cache.time_limit, self._cache.memory_limit)).do(order)


def _outline(shape: tuple[int, ...], meta: VideoMetadata | None) -> Clip:
    return Clip(frames=torch.empty(shape, dtype=torch.uint8, device="meta"), meta=meta)


def _check_limits(frames: FramesConfig) -> None:
    limits = (
        ("video_min_pixels", frames.video_min_pixels, "video_max_pixels", frames.video_max_pixels),
        ("image_min_pixels", frames.image_min_pixels, "image_max_pixels", frames.image_max_pixels),
    )
    problems = [f"frames.{low}: {least} is above frames.{high}, {most}" for low, least, high, most in limits if (least or 0) > most]
    if problems:
        raise ConfigError(problems)


def _writable(folder: Path) -> bool:
    """Entries can be added: where not, clips are decoded each time, as with ``cache.mode: off``."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    return os.access(place, os.W_OK | os.X_OK)
