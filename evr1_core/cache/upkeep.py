"""Looking after a cache folder: what is in it, whether it is whole, and making room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from evr1_core.cache.store import DamagedEntryError, check, entries, load, sweep
from evr1_core.cache.uses import in_use, last_used


@frozen(kw_only=True)
class Listed:
    """One entry: ``size`` in bytes, ``used`` in seconds since the epoch, ``shape`` of its frames; ``problem`` if it is damaged."""

    key: str
    size: int
    used: float
    path: str = ""
    shape: tuple[int, ...] = ()
    problem: str = ""


@frozen(kw_only=True)
class Cleaned:
    """What making room did, in entries and bytes: ``busy`` ones stayed because somebody uses them."""

    removed: int
    freed: int
    left: int
    busy: int


def listed(folder: Path) -> Iterator[Listed]:
    """All entries, the most recently used first."""
    for path in sorted(entries(folder), key=last_used, reverse=True):
        size, used = path.stat().st_size, last_used(path)
        try:
            entry = load(path)
        except DamagedEntryError as error:
            yield Listed(key=path.stem, size=size, used=used, problem=str(error))
            continue
        shape = tuple(entry.clip.frames.shape)
        yield Listed(key=path.stem, size=size, used=used, path=str(entry.meta["path"]), shape=shape)


def verify(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Every entry, read in full, with what is wrong with it."""
    for path in entries(folder):
        yield path, check(path)


def clean(folder: Path, max_bytes: int) -> Cleaned:
    """Removes the least recently used entries until the rest takes at most ``max_bytes``, and what killed writers left.

    Never an entry that a living process has opened, here or on another machine.
    """
    sweep(folder)
    found = sorted(((last_used(path), path.stat().st_size, path) for path in entries(folder)), key=lambda each: each[:2])
    left = sum(size for _, size, _ in found)
    busy = freed = removed = 0
    for _, size, path in found:
        if left <= max_bytes:
            break
        if path.stem in in_use(folder):  # asked anew each time: somebody may have opened it since
            busy += 1
            continue
        path.unlink(missing_ok=True)
        left, freed, removed = left - size, freed + size, removed + 1
    return Cleaned(removed=removed, freed=freed, left=left, busy=busy)
