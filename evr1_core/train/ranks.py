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

    def deal(self, items: Sequence[T]) -> Sequence[T]:
        """The share of this process of items that all processes have."""
        return items[self.rank :: self.size]

    def joined(self, results: list[T] | Evr1Error) -> list[T]:
        """The results of all processes on what they were dealt, in the order of the items. An error of one is raised in all: a
        process that went on would wait for the others without end."""
        every = self.gather(str(results) if isinstance(results, Evr1Error) else results)
        if isinstance(results, Evr1Error):
            raise results
        for rank, each in enumerate(every):
            if isinstance(each, str):
                raise Evr1Error(f"process {rank} of {self.size}: {each}")
        shares = [each for each in every if not isinstance(each, str)]
        return [shares[place % self.size][place // self.size] for place in range(sum(map(len, shares)))]

    def spread(self, items: Sequence[T], work: Callable[[Sequence[T]], list[Any]]) -> list[Any]:
        """``work(items)``, each process doing its share; every process gets all results."""
        try:
            results: Any = work(self.deal(items))
        except Evr1Error as error:
            results = error
        return self.joined(results)

    @contextmanager
    def one_first(self) -> Iterator[None]:
        """One process of each machine goes first, the others find its files on disk."""
        if self.size > 1 and self.local_rank > 0:
            distributed.barrier()
        yield
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
