"""Which entries are in use, and when each was used last: what `evr1 cache gc` must know.

A process writes the keys it opens into a file of its own, which it keeps locked while it lives. That also works from several
machines that share a folder, where nobody can look into the other's memory.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from pathlib import Path
from typing import Any

FOLDER = ".in-use"
RESOLUTION = 60  # seconds; the time of use is not written more often


class Uses:
    """The keys that this process has opened in a cache folder. Where nothing can be written, nothing is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._keys: set[str] = set()
        self._file: Any = None
        self._owner = 0

    def note(self, key: str) -> None:
        """Says that an entry is in use, before it is opened."""
        if self._owner != os.getpid():  # a forked process notes its own
            self._keys, self._file, self._owner = set(), None, os.getpid()
        if key in self._keys:
            return
        self._keys.add(key)
        try:
            if self._file is None:
                self._file = self._started()
            self._file.write(f"{key}\n".encode())
        except OSError:  # a cache that is only read is only cleaned by those who own it
            self._file = None

    def _started(self) -> Any:
        (self._folder / FOLDER).mkdir(exist_ok=True)
        file = (self._folder / FOLDER / secrets.token_hex(8)).open("xb", buffering=0)
        fcntl.flock(file, fcntl.LOCK_SH)
        return file


def touch(path: Path) -> None:
    """Notes the time of use in the modification time of an entry, where that is allowed: access times move when files are checked,
    or not at all."""
    try:
        if time.time() - last_used(path) > RESOLUTION:
            os.utime(path)
    except OSError:  # read-only, or cleaned away just now: opening it tells
        return


def last_used(path: Path) -> float:
    """Seconds since the epoch."""
    return path.stat().st_mtime


def in_use(folder: Path) -> set[str]:
    """The keys that living processes hold; files of those that have ended are removed."""
    keys: set[str] = set()
    for path in (folder / FOLDER).glob("*"):
        try:
            with path.open("rb+") as file:
                if _free(file):
                    path.unlink(missing_ok=True)
                else:
                    keys.update(file.read().decode().split())
        except FileNotFoundError:
            continue
    return keys


def _free(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
