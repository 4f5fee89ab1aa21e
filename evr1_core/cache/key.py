"""What names an entry: the file, the part of it, and everything that decides frames and sizes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Literal

from attrs import asdict

from evr1_core.api import Media, MediaError, PatchGrid
from evr1_core.config.schema import FramesConfig

FORMAT = 2  # of entries, and of how their frames are chosen, decoded and resized
NOT_IN_KEY = {"video_min_readable"}  # decides whether an entry is used, and not what is in it

_hashes: dict[tuple[int, int, int, int], str] = {}  # by device, inode, size and time of change


def entry_key(
    media: Media, frames: FramesConfig, grid: PatchGrid, *, root: Path | None, identity: Literal["stat", "content"]
) -> str:
    """64 hexadecimal digits. Raises MediaError when there is no such file."""
    status = _status(media.path)
    if identity == "content":
        named: list[str | int] = [_content(media.path, status)]
    else:
        named = [_place(media.path, root), status.st_size, status.st_mtime_ns]
    limits = {name: value for name, value in asdict(frames).items() if name.startswith(f"{media.kind}_") and name not in NOT_IN_KEY}
    span = None if media.span is None else [float(second) for second in media.span]
    parts = [FORMAT, media.kind, named, span, limits, asdict(grid)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        reason = "is a link to nothing" if os.path.islink(path) else "there is no such file"
        raise MediaError(path, "missing", reason) from error
    except (OSError, ValueError) as error:
        raise MediaError(path, "forbidden", f"cannot be looked at ({getattr(error, 'strerror', None) or error})") from error
    if not stat.S_ISREG(status.st_mode):
        raise MediaError(path, "no_file", "is a folder" if stat.S_ISDIR(status.st_mode) else "is no regular file")
    return status


def _place(path: str, root: Path | None) -> str:
    """The path below the root, so that a tree may lie elsewhere on another machine; a file outside by its whole path."""
    whole = Path(os.path.abspath(path))
    if root is not None and whole.is_relative_to(base := os.path.abspath(root)):
        return whole.relative_to(base).as_posix()
    return whole.as_posix()


def _content(path: str, status: os.stat_result) -> str:
    known = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if known not in _hashes:
        try:
            with open(path, "rb") as file:
                _hashes[known] = hashlib.file_digest(file, "sha256").hexdigest()
        except PermissionError as error:
            raise MediaError(path, "forbidden", "may not be read") from error
        except OSError as error:
            raise MediaError(path, "undecodable", f"cannot be read ({error.strerror})") from error
    return _hashes[known]
