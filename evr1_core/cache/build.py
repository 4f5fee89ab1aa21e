"""Fills the cache ahead of a run, with several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attrs import frozen

from evr1_core.api import Media, MediaError, PatchGrid
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import CacheConfig, FramesConfig


@frozen(kw_only=True)
class Job:
    """One file, and the cache that it belongs into."""

    media: Media
    cache: CacheConfig
    frames: FramesConfig
    grid: PatchGrid
    media_root: Path
    folder: Path


def build(jobs: Sequence[Job], workers: int) -> Iterator[MediaError | None]:
    """Decodes and stores what is missing; one result a job, in order: None, or why the file cannot be used."""
    if workers == 1:
        yield from map(_store, jobs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_store, jobs, chunksize=4)


def _store(job: Job) -> MediaError | None:
    import torch

    torch.set_num_threads(1)  # the processes share the cores
    cache = FrameCache(job.cache, job.frames, job.grid, media_root=job.media_root, folder=job.folder)
    try:
        cache.clip(job.media)
    except MediaError as error:
        return error
    return None
