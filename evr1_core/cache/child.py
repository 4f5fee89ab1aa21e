"""Decoding in processes of their own, with a time and a memory limit: what hangs or crashes there is killed and replaced.

Frames do not go through the pipe: the child writes an entry and answers with a few numbers.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, frozen

from evr1_core.api import CacheError, Media, MediaError, PatchGrid
from evr1_core.api.workers import Failed, Workers
from evr1_core.config.schema import FramesConfig

TARGET = f"{__name__}:serve"
UNLIMITED = resource.RLIM_INFINITY
KINDS = {"stalled": "timeout", "memory": "memory", "crash": "crash"}

Do = Literal["plan", "store"]


@frozen(kw_only=True)
class Order:
    """One piece of work. ``folder`` and ``key`` name the entry to write; ``lasting``: it must survive a power cut."""

    do: Do
    media: Media
    frames: FramesConfig
    grid: PatchGrid
    name: str = ""  # of the file, for the record
    folder: str = ""
    key: str = ""
    lasting: bool = True
    threads: int = 0


class Decoders:
    """Processes that do orders. Threads may share them; they are started when needed, and shared by all with the same limits."""

    def __init__(self, *, size: int = 1, time_limit: float, memory_mb: int, target: str = TARGET) -> None:
        first = {"order": None, "memory_mb": memory_mb}
        self._workers = Workers(target, size=size, time_limit=0, wall_limit=time_limit, memory=UNLIMITED, first=first)
        self._limits = {"stalled": f"decoding took longer than {time_limit:g} s (cache.time_limit)"}
        self._limits["memory"] = f"decoding needs more than {memory_mb} MB (cache.memory_limit)"

    def do(self, order: Order) -> dict[str, Any]:
        """What :func:`work` returns. Raises MediaError, also when the process hung or crashed, and CacheError."""
        answer = self._workers.ask({"order": asdict(order)})
        if isinstance(answer, Failed):
            if order.folder:
                from evr1_core.cache.store import sweep

                sweep(Path(order.folder), order.key)
            reason = self._limits.get(answer.reason, f"the decoder crashed ({answer.detail})")
            raise MediaError(order.media.path, KINDS[answer.reason], reason)
        if "media_error" in answer:
            raise MediaError(*answer["media_error"])
        if "cache_error" in answer:
            raise CacheError(answer["cache_error"])
        return dict(answer)

    def close(self) -> None:
        """Ends the processes."""
        self._workers.close()


_shared: dict[tuple[float, int], Decoders] = {}
_lock = threading.Lock()


def shared(time_limit: float, memory_mb: int) -> Decoders:
    """One decoding process for all caches of this process with the same limits."""
    with _lock:
        return _shared.setdefault((time_limit, memory_mb), Decoders(time_limit=time_limit, memory_mb=memory_mb))


def work(order: Order) -> dict[str, Any]:
    """Does an order in this process: ``plan`` gives ``{"plan": {...}, "meta": {...} | None}``, ``store`` writes the entry and
    gives ``{"readable": share of the promised frames}``.

    Raises MediaError and CacheError.
    """
    from evr1_core.cache.produce import Budget, plan, produce
    from evr1_core.cache.store import save

    budget = Budget(frames=order.frames, grid=order.grid)
    if order.do == "plan":
        planned, meta = plan(order.media, budget)
        return {"plan": asdict(planned), "meta": meta and asdict(meta)}
    clip = produce(order.media, budget, threads=order.threads)
    span = order.media.span and list(order.media.span)
    source = {"kind": order.media.kind, "path": order.name, "span": span}
    save(Path(order.folder), order.key, clip, source, lasting=order.lasting)
    return {"readable": 1.0 if clip.meta is None else clip.meta.readable}


def serve(order: Mapping[str, Any] | None, memory_mb: int = 0) -> dict[str, Any]:
    """The child's side: errors become answers. The first call, without an order, imports everything and sets the limit."""
    if order is None:
        _prepare(memory_mb)
        return {}
    media = {**order["media"], "span": order["media"]["span"] and tuple(order["media"]["span"])}
    parts = {"media": Media(**media), "frames": FramesConfig(**order["frames"]), "grid": PatchGrid(**order["grid"])}
    try:
        return work(Order(**{**order, **parts}))
    except MediaError as error:
        return {"media_error": [error.path, error.kind, error.reason]}
    except CacheError as error:
        return {"cache_error": str(error)}
    except RuntimeError as error:
        if "allocate memory" in str(error):  # torch has no type for it
            raise MemoryError(str(error)) from error
        raise


def _prepare(memory_mb: int) -> None:
    import torch

    from evr1_core.cache import produce, store

    assert produce, store
    torch.set_num_threads(1)
    # data and not address space: libraries of a GPU build map gigabytes that nobody touches
    limit = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
