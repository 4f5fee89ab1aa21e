"""Fills the cache ahead of a run, with several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from attrs import frozen

from evr1_core.api import Media, MediaError
from evr1_core.cache.frames import FrameCache
from evr1_core.cache.store import sweep


@frozen(kw_only=True)
class Built:
    """What became of one file: ``present``: it was stored before; ``readable``: the share of its frames that is there; ``error``:
    why it cannot be used."""

    media: Media
    present: bool = False
    readable: float = 1.0
    error: MediaError | None = None


def build(cache: FrameCache, media: Sequence[Media], workers: int) -> Iterator[Built]:
    """Decodes and stores what is missing, each distinct key once; one result a key, as they are done.

    Raises CacheError when the folder cannot take more; what is stored stays.
    """
    sweep(cache.folder)
    todo, failed = _distinct(cache, media)
    yield from failed
    threads = ThreadPoolExecutor(workers)
    futures = [threads.submit(_store, cache, each) for each in todo]
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:  # also when the caller is interrupted, who then ends the processes that the threads wait for
        threads.shutdown(wait=False, cancel_futures=True)


def _distinct(cache: FrameCache, media: Sequence[Media]) -> tuple[list[Media], list[Built]]:
    found: dict[str, Media] = {}
    failed = []
    for each in media:
        try:
            found.setdefault(cache.key(each), each)
        except MediaError as error:
            failed.append(Built(media=each, error=error))
    return list(found.values()), failed


def _store(cache: FrameCache, media: Media) -> Built:
    try:
        stored = cache.store(media)
        return Built(media=media, present=stored.present, readable=stored.readable)
    except MediaError as error:
        return Built(media=media, error=error)
