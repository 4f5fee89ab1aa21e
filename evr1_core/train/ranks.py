"""The processes that train one model together, and what they tell each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from attrs import frozen
from torch import distributed

from evr1_core.api import ConfigError, Evr1Error

T = TypeVar("T")
R = TypeVar("R")
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # set by torchrun


@frozen(kw_only=True)
class Ranks:
    """One of ``size`` processes. With one process there is no process group, and everything here answers at once."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def leads(self) -> bool:
        """This process writes files and reports."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Where this process computes: a GPU of its own where there are some."""
        return torch.device("cuda", self.local_rank) if torch.cuda.is_available() else torch.device("cpu")

    def gather(self, value: T) -> list[T]:
        """The value of every process, in order of rank. All processes have to call it."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def spread(self, items: Sequence[T], work: Callable[[Sequence[T]], list[R]], owners: Sequence[int] | None = None) -> list[R]:
        """``work(items)``, each process doing the items that it owns (in turn, unless ``owners`` names a rank for each); every
        process gets all results. An error of one is raised in all: a process that went on would wait for the others without end."""
        owners = self.turns(len(items)) if owners is None else owners
        results: list[R] | Evr1Error
        try:
            results = work(self.own(items, owners))
        except Evr1Error as error:
            results = error
        return self.joined(results, owners)

    def turns(self, count: int) -> list[int]:
        """Ranks in turn."""
        return [place % self.size for place in range(count)]

    def own(self, items: Sequence[T], owners: Sequence[int]) -> list[T]:
        """The items of this process."""
        return [item for item, owner in zip(items, owners, strict=True) if owner == self.rank]

    def joined(self, results: list[R] | Evr1Error, owners: Sequence[int]) -> list[R]:
        """The results of all processes, each on its own items, in the order of the items. Raises the error of any of them."""
        shares = []
        for each in self.gather(results):
            if isinstance(each, Evr1Error):
                raise each
            shares.append(iter(each))
        return [next(shares[owner]) for owner in owners]

    def led(self, work: Callable[[], R]) -> R:
        """What the leading process makes of ``work``; the others do not call it."""
        return self.spread([None], lambda items: [work() for _ in items], [0])[0]

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """One process of each machine goes first, the others find its files on disk."""
        if self.size > 1 and self.local_rank > 0:
            distributed.barrier()
        try:
            yield
        finally:
            if self.size > 1 and self.local_rank == 0:
                distributed.barrier()


ALONE = Ranks()


def join(minutes: float) -> Ranks:
    """The processes that torchrun has started, in a process group; ``ALONE`` without them. An operation that the others do not join
    within ``minutes`` is an error. Raises ConfigError when the environment is incomplete."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return ALONE
    missing = [name for name in NAMES if name not in os.environ]
    if missing:
        raise ConfigError([f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} not set: start with torchrun"])
    ranks = Ranks(rank=int(os.environ["RANK"]), size=int(os.environ["WORLD_SIZE"]), local_rank=int(os.environ["LOCAL_RANK"]))
    if ranks.device.type == "cuda":
        torch.cuda.set_device(ranks.device)
    backend = "cpu:gloo,cuda:nccl" if ranks.device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=timedelta(minutes=minutes))
    return ranks


def leave(ranks: Ranks) -> None:
    """Ends the process group."""
    if ranks.size > 1:
        distributed.destroy_process_group()
