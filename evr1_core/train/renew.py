"""An engine that gets the policy's weights again when it has died and was started anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
from torch import Tensor, nn

from evr1_core.api import ModelFamily, Request, Rollout, RolloutEngine, WeightsLostError


@attrs.define(kw_only=True)
class RenewedEngine(RolloutEngine):
    """Stands in the place of ``engine``; ``weights`` are the policy's whenever they are asked for.

    How often an engine starts anew is its own affair: one that has enough of it raises another error, which ends the run. In a run
    of several processes all of them meet the error together, so that all take part in gathering the weights.
    """

    api = 1

    engine: RolloutEngine
    weights: Callable[[], Iterable[tuple[str, Tensor]]]

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        await self.engine.start(model_path, family, processor, module)
        await self.load_weights(self.weights())  # settings may have made them differ from the checkpoint's

    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        while True:
            try:
                return await self.engine.generate(requests)
            except WeightsLostError:
                await self.load_weights(self.weights())

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        while True:
            try:
                return await self.engine.load_weights(weights)
            except WeightsLostError:
                weights = self.weights()

    async def sleep(self) -> None:
        await self.engine.sleep()

    async def wake(self) -> None:
        await self.engine.wake()

    async def close(self) -> None:
        await self.engine.close()
