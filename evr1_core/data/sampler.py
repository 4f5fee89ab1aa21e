"""The order in which training records are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from attrs import define, field


@define
class EpochSampler(Iterator[list[int]]):
    """Batches of record numbers, epoch after epoch, each in an order of its own that depends on the seed and the epoch alone.

    A batch may span two epochs. ``epoch`` counts finished passes and the part of the running one is not counted.
    """

    num_samples: int
    batch: int
    seed: int = field(default=0, kw_only=True)
    shuffle: bool = field(default=True, kw_only=True)
    _position: int = field(default=0, init=False)  # records drawn since the start

    @property
    def epoch(self) -> int:
        """Whole passes over the records so far."""
        return self._position // self.num_samples

    def __next__(self) -> list[int]:
        places = range(self._position, self._position + self.batch)
        self._position += self.batch
        orders: dict[int, list[int]] = {}
        return [self._order(place // self.num_samples, orders)[place % self.num_samples] for place in places]

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs."""
        return {"position": self._position, "num_samples": self.num_samples, "seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another sampler of the same records stood. Raises ValueError when they are not the same."""
        if (state["num_samples"], state["seed"]) != (self.num_samples, self.seed):
            raise ValueError("the saved order is that of other records or another seed")
        self._position = int(state["position"])

    def _order(self, epoch: int, orders: dict[int, list[int]]) -> list[int]:
        if epoch not in orders:
            order = list(range(self.num_samples))
            if self.shuffle:
                random.Random(f"{self.seed}:{epoch}").shuffle(order)
            orders[epoch] = order
        return orders[epoch]
