"""The order in which training records are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field, validators


@define
class EpochSampler(Iterator[list[int]]):
    """Batches of record numbers, epoch after epoch without end, each in an order of its own that seed and epoch decide.

    Every record is drawn once an epoch. A batch may span two epochs; it holds no record twice unless it is larger than an epoch.
    """

    num_samples: int = field(validator=validators.gt(0))
    batch: int = field(validator=validators.gt(0))
    seed: int = field(default=0, kw_only=True)
    shuffle: bool = field(default=True, kw_only=True)
    _position: int = field(default=0, init=False)  # records drawn since the start
    _orders: dict[int, list[int]] = field(factory=dict, init=False, repr=False, eq=False)

    @property
    def epoch(self) -> int:
        """Whole passes over the records so far."""
        return self._position // self.num_samples

    def __next__(self) -> list[int]:
        places = range(self._position, self._position + self.batch)
        self._position += self.batch
        return [self._order(place // self.num_samples)[place % self.num_samples] for place in places]

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs: plain values."""
        return {"position": self._position, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where another sampler of the same records stood. Raises ValueError when it drew in another order."""
        for name, value in self._identity().items():
            if state[name] != value:
                raise ValueError(f"the saved order has {name} = {state[name]}, this one {value}: it would draw other records")
        self._position = int(state["position"])

    def _identity(self) -> dict[str, Any]:
        return {"num_samples": self.num_samples, "batch": self.batch, "seed": self.seed, "shuffle": self.shuffle}

    def _order(self, epoch: int) -> list[int]:
        """The records of an epoch."""
        if epoch not in self._orders:
            # An epoch's last records depend on the epoch before only where a batch can reach over half of it: count from the first.
            known = self.num_samples >= 2 * self.batch or epoch - 1 in self._orders
            for each in range(epoch if known else 0, epoch + 1):
                self._orders[each] = self._made(each)
            for old in [each for each in self._orders if each < epoch - 1 - self.batch // self.num_samples]:
                del self._orders[old]  # a batch asks for no epoch before these
        return self._orders[epoch]

    def _made(self, epoch: int) -> list[int]:
        order = self._shuffled(epoch)
        shared = (
            epoch * self.num_samples % self.batch
        )  # records at the end of the last epoch that share a batch with this one's first
        if not self.shuffle or not shared or self.num_samples < self.batch:
            return order
        before = self._orders[epoch - 1] if epoch - 1 in self._orders else self._shuffled(epoch - 1)
        drawn = set(before[-shared:])
        head = [number for number in order if number not in drawn][: self.batch - shared]
        taken = set(head)
        return head + [number for number in order if number not in taken]

    def _shuffled(self, epoch: int) -> list[int]:
        order = list(range(self.num_samples))
        if self.shuffle:
            random.Random(f"{self.seed}:{epoch}").shuffle(order)
        return order
