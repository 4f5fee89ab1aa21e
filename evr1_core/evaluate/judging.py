"""The last stage: a judge decides what rules could not, while questions are still asked, or later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from attrs import define, field

from evr1_core.api import EvalItem, NotJudgedError
from evr1_core.api.judge import JudgeClient
from evr1_core.evaluate.answers import judged
from evr1_core.evaluate.rows import Row
from evr1_core.evaluate.work import Work

PATIENCE = 5  # answers in a row that the judge did not reply to: it is away

Waiting = tuple[Work, EvalItem, Row]


@define(kw_only=True)
class Judging:
    """Rows that wait for a judge. When it is away, they stay as they are; ``outage`` then says why."""

    client: JudgeClient
    said: Callable[[Work, Row], None]
    outage: str = field(default="", init=False)
    _queue: asyncio.Queue[Waiting | None] = field(factory=asyncio.Queue, init=False)
    _failures: int = field(default=0, init=False)

    def submit(self, work: Work, item: EvalItem, row: Row) -> None:
        """Puts a row in line."""
        if self.client.base_url:
            self._queue.put_nowait((work, item, row))

    def finish(self) -> None:
        """No more rows will come."""
        for _ in range(self.client.concurrency):
            self._queue.put_nowait(None)

    async def run(self) -> None:
        """Judges until :meth:`finish`, several rows at a time."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self.client.concurrency):
                tasks.create_task(self._judge())

    async def _judge(self) -> None:
        while (waiting := await self._queue.get()) is not None:
            if self.outage:
                continue
            work, item, row = waiting
            try:
                done = await asyncio.to_thread(judged, work.benchmark, item, row, self._ask)
            except NotJudgedError as error:
                self._failures += 1
                if self._failures >= PATIENCE:
                    self.outage = str(error)
                continue
            self._failures = 0
            work.record(done)
            self.said(work, done)

    def _ask(self, prompt: str) -> str:
        return self.client.ask(prompt, lambda reply: reply)
