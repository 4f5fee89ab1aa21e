"""Three stages at once: frames, prefill and decoding in the engine, scores and judge. The queues between them are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field

from evr1_core.api import EngineError, EvalItem, ModelError, Request, Rollout, RolloutEngine
from evr1_core.cache.frames import FrameCache
from evr1_core.evaluate.answers import Failure, Response, failed, scored
from evr1_core.evaluate.judging import Judging
from evr1_core.evaluate.loading import Loader, NotReadyError, Ready
from evr1_core.evaluate.memory import Room, cost
from evr1_core.evaluate.rows import Row
from evr1_core.evaluate.work import Work, groups

FILL = 0.05  # seconds that a batch waits for one more question
PATIENCE = 8  # questions in a row that the engine fails on: it is broken, and not they

Group = tuple[Work, list[EvalItem]]
# What may go wrong with one request: its prompt, the engine's own process, and what torch raises for lack of memory and bad shapes.
ENGINE_FAULTS = (ModelError, EngineError, RuntimeError)


@define(kw_only=True, eq=False)
class Pipeline:
    """Asks the open questions of several benchmarks, one engine for all. ``said`` hears of every row."""

    engine: RolloutEngine
    loader: Loader
    works: Sequence[Work]
    caches: Mapping[str, FrameCache]
    judging: Judging
    workers: int
    room: Room
    said: Callable[[Work, Row], None]
    _ready: asyncio.Queue[Ready | None] = field(init=False)
    _opened: bool = field(init=False)
    _failures: int = field(default=0, init=False)
    _over: Ready | None = field(default=None, init=False)  # did not fit into the last batch

    def __attrs_post_init__(self) -> None:
        self._ready = asyncio.Queue(maxsize=max(2, 2 * self.engine.appetite))
        self._opened = self.loader.family.opens_thinking(self.loader.processor)

    async def run(self) -> None:
        """Returns when every question has a row. Raises CacheError when frames find no room, EngineError from a broken engine."""
        try:
            async with asyncio.TaskGroup() as tasks:
                judge = tasks.create_task(self.judging.run())
                async with asyncio.TaskGroup() as asking:
                    asking.create_task(self._load())
                    for _ in range(1 if self.engine.in_process else self.engine.appetite):
                        asking.create_task(self._ask())
                self.judging.finish()
                await judge
        except BaseExceptionGroup as group:
            raise _first(group) from group

    async def _load(self) -> None:
        source = iter([(work, group) for work in self.works for group in groups(work.todo())])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self.workers):
                tasks.create_task(self._load_groups(source))
        await self._ready.put(None)

    async def _load_groups(self, source: Iterator[Group]) -> None:
        for work, items in source:
            cache = self.caches[work.id]
            try:
                video = await asyncio.to_thread(self.loader.video, work, cache, items[0])
            except NotReadyError as error:
                for item in items:
                    self._fail(work, item, error.kind, str(error))
                continue
            for item in items:
                try:
                    ready = await asyncio.to_thread(self.loader.ready, work, cache, item, video)
                except NotReadyError as error:
                    self._fail(work, item, error.kind, str(error))
                else:
                    await self._ready.put(ready)

    async def _ask(self) -> None:
        while batch := await (self._batch() if self.engine.in_process else self._one()):
            size = sum(cost(ready.request) for ready in batch)
            await self.room.enter(size)
            try:
                await self._answer(batch)
            finally:
                self.room.leave(size)

    async def _one(self) -> list[Ready]:
        """The next question; none at the end."""
        ready = await self._ready.get()
        if ready is None:
            self._ready.put_nowait(None)  # for the others
        return [] if ready is None else [ready]

    async def _batch(self) -> list[Ready]:
        """As many questions as an engine in this process computes together; none at the end."""
        batch, self._over = [self._over] if self._over else await self._one(), None
        size = sum(cost(ready.request) for ready in batch)
        while 0 < len(batch) < self.engine.appetite:
            try:
                more = await asyncio.wait_for(self._one(), FILL)
            except TimeoutError:
                break
            if not more:
                break
            if not self.room.fits(own := cost(more[0].request), size):
                self._over = more[0]
                break
            batch += more
            size += own
        return batch

    async def _answer(self, batch: Sequence[Ready]) -> None:
        try:
            answers = await self._generated([ready.request for ready in batch])
        except ENGINE_FAULTS as error:
            if len(batch) > 1:  # one of them is to blame
                for ready in batch:
                    await self._answer([ready])
                return
            await self._again(batch[0], error)
            return
        self._failures = 0
        for ready, (rollout, *_) in zip(batch, answers, strict=True):
            self._finish(ready, rollout)

    async def _again(self, ready: Ready, error: Exception) -> None:
        """An engine that died may have started anew; what fails twice is a row."""
        if isinstance(error, EngineError):
            try:
                ((rollout, *_),) = await self._generated([ready.request])
            except ENGINE_FAULTS as second:
                error = second
            else:
                self._finish(ready, rollout)
                return
        self._failures += 1
        if self._failures >= PATIENCE:
            raise EngineError(f"the engine failed on {PATIENCE} questions in a row; the last: {error}") from error
        self._fail(ready.work, ready.item, "engine", f"{type(error).__name__}: {error}")

    async def _generated(self, requests: list[Request]) -> list[list[Rollout]]:
        if not self.engine.in_process:
            return await self.engine.generate(requests)
        return await asyncio.to_thread(asyncio.run, self.engine.generate(requests))

    def _finish(self, ready: Ready, rollout: Rollout) -> None:
        response = Response(
            text=rollout.text,
            truncated=rollout.finish == "length",
            num_tokens=len(rollout.token_ids),
            prompt_tokens=ready.prompt_tokens,
            opened=self._opened,
            boxes=ready.boxes,
        )
        row = scored(ready.work.benchmark, ready.item, response, ready.work.settings)
        self._keep(ready.work, row)
        if row["judge"] == "pending":
            self.judging.submit(ready.work, ready.item, row)

    def _fail(self, work: Work, item: EvalItem, kind: Failure, reason: str) -> None:
        self._keep(work, failed(work.benchmark, item, work.settings, kind, reason))

    def _keep(self, work: Work, row: dict[str, Any]) -> None:
        work.record(row)
        self.said(work, row)


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    """The exception that ended the others."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
