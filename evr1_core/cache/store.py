"""Entries on disk: one ``.pt`` file a key, written whole or not at all, mapped into memory when read."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import pickle
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import av
import torch
from attrs import asdict, frozen
from torch import Tensor

from evr1_core.api import CacheError, Clip, VideoMetadata
from evr1_core.cache.key import FORMAT

ENDING = ".pt"
UNFINISHED = ".tmp"  # ending of files that are being written
HEADROOM = 1 << 16  # bytes of an entry beside its frames
_META = ("fps", "total_frames", "duration", "height", "width", "source_height", "source_width", "readable")


class DamagedEntryError(CacheError):
    """An entry is not what was stored."""


@frozen(kw_only=True, eq=False)
class Entry:
    """A stored clip with all that is recorded about it."""

    clip: Clip
    meta: Mapping[str, Any]


def entry_path(folder: Path, key: str) -> Path:
    """Where the entry of a key lies, or would."""
    return folder / f"{key}{ENDING}"


def save(folder: Path, key: str, clip: Clip, source: Mapping[str, Any], *, lasting: bool = True) -> Path:
    """Writes an entry under another name, then renames it; ``lasting``: only once it is on the disk.

    ``source``: plain facts about the file. The same clip gives the same bytes. Raises CacheError when there is no room or no right
    to write, and leaves nothing behind.
    """
    frames = clip.frames.contiguous()
    meta = {
        "format": FORMAT,
        "key": key,
        "decoder": f"av {av.__version__}",
        **source,
        **({} if clip.meta is None else _plain(clip.meta)),
        "checksum": "",
    }
    meta["checksum"] = checksum(frames, meta)
    entry = entry_path(folder, key)
    with _writing(folder, key, lasting) as (file, temporary):
        with _room(file, frames.numel() + HEADROOM):
            torch.save({"frames": frames, "meta": meta}, file)
        file.flush()
        if lasting:
            os.fsync(file.fileno())
        temporary.replace(entry)
    if lasting:
        _sync_folder(folder)
    return entry


def load(path: Path) -> Entry:
    """An entry, mapped and not read. Raises FileNotFoundError, or DamagedEntryError."""
    try:
        stored = torch.load(path, weights_only=True, mmap=True)
        meta = stored["meta"]
        if meta["key"] != path.stem or meta["format"] != FORMAT:
            raise DamagedEntryError(f"{path}: holds the entry of another key; remove it")
        return Entry(clip=_clip(stored["frames"], meta), meta=meta)
    except FileNotFoundError:
        raise
    except (RuntimeError, pickle.UnpicklingError, EOFError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedEntryError(f"{path}: is damaged ({str(error).splitlines()[0]}); remove it") from error


def check(path: Path) -> str | None:
    """What is wrong with an entry, after reading all of it; None: nothing."""
    try:
        entry = load(path)
    except DamagedEntryError as error:
        return str(error)
    if checksum(entry.clip.frames, entry.meta) != entry.meta["checksum"]:
        return f"{path}: does not match its checksum; remove it"
    return None


def checksum(frames: Tensor, meta: Mapping[str, Any]) -> str:
    """Over pixels and record, but for the sum itself."""
    digest = hashlib.blake2b(frames.numpy().reshape(-1).data, digest_size=32)
    digest.update(json.dumps({**meta, "checksum": ""}, sort_keys=True).encode())
    return digest.hexdigest()


def entries(folder: Path) -> list[Path]:
    """All entries of a folder."""
    return sorted(path for path in folder.glob(f"*{ENDING}") if len(path.stem) == 64)


def sweep(folder: Path, key: str = "") -> int:
    """Removes what writers left that were killed, of one key or of all; how many files. Never one that is being written."""
    swept = 0
    for path in folder.glob(f".{key}*{UNFINISHED}"):
        try:
            with path.open("rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
                swept += 1
        except OSError:  # its writer lives and holds the lock, or it is gone by now
            continue
    return swept


def _plain(meta: VideoMetadata) -> dict[str, Any]:
    return {**asdict(meta), "indices": list(meta.indices), "times": list(meta.times)}


def _clip(frames: Tensor, meta: Mapping[str, Any]) -> Clip:
    if meta["kind"] == "image":
        return Clip(frames=frames)
    values = {name: meta[name] for name in _META}
    return Clip(frames=frames, meta=VideoMetadata(**values, indices=tuple(meta["indices"]), times=tuple(meta["times"])))


@contextmanager
def _writing(folder: Path, key: str, lasting: bool) -> Iterator[tuple[Any, Path]]:
    """A new file, locked for as long as it is written and gone if that fails."""
    temporary = folder / f".{key}.{secrets.token_hex(6)}{UNFINISHED}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            _claim(file)
            try:
                yield file, temporary
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise CacheError(_reason(folder, error)) from error


def _claim(file: Any) -> None:
    """Shows :func:`sweep` that the writer lives; where files cannot be locked, that never removes any."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH)


@contextmanager
def _room(file: Any, size: int) -> Iterator[None]:
    """Claims the disk space first: running out of it while writing could not be told from other faults of the writer."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):  # not every file system can
            raise
    yield
    file.truncate(file.tell())


def _reason(folder: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cache.folder: no room left in {folder} ({error.strerror}); `evr1 cache gc --max-size` makes some"
    return f"cache.folder: cannot write in {folder} ({error.strerror or error})"


def _sync_folder(folder: Path) -> None:
    """Makes the renaming last, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
