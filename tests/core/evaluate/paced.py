"""An engine that takes the time of a GPU: some to read a prompt, some for every token, a limited number of requests at once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from attrs import define, field

from evr1_core.api import Rollout, RolloutEngine


@define(kw_only=True)
class Paced(RolloutEngine):
    """Answers "B" after so many seconds. ``busy``: for every request when it got a slot and when it left it."""

    api = 1

    slots: int = field(default=8, metadata={"help": "requests served at once"})
    prefill: float = field(default=0.2, metadata={"help": "seconds for a prompt"})
    token: float = field(default=0.02, metadata={"help": "seconds for a token"})
    tokens: int = field(default=10, metadata={"help": "tokens of a response"})
    busy: Any = field(factory=list, init=False)
    _free: Any = field(default=None, init=False)

    @property
    def appetite(self) -> int:
        return self.slots + self.slots // 2

    async def start(self, model_path, family, processor, module):
        assert module is None
        self._free = asyncio.Semaphore(self.slots)
        STARTED.append(self)

    async def generate(self, requests):
        return [[await self._answer(request)] for request in requests]

    async def _answer(self, request):
        async with self._free:
            start = time.monotonic()
            await asyncio.sleep(self.prefill)
            for _ in range(self.tokens):
                await asyncio.sleep(self.token)
            self.busy.append((start, time.monotonic()))
        return Rollout(text="B", token_ids=(1,) * self.tokens, logprobs=None, finish="stop")

    def filled(self):
        """The share of slots in use from when the first eight are in until the last eight begin to leave."""
        first = sorted(start for start, _ in self.busy)[self.slots - 1]
        last = sorted(end for _, end in self.busy)[-self.slots]
        used = sum(max(0.0, min(end, last) - max(start, first)) for start, end in self.busy)
        return used / (self.slots * (last - first))


STARTED: list[Paced] = []
