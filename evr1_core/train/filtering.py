"""Finds the records that a model can learn from: of several responses, drawn as in training, neither all nor none is right."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal

from attrs import evolve, frozen

from evr1_core.api import ConfigError, DataError, MediaError, RolloutEngine, Sample
from evr1_core.api.filters import keeps
from evr1_core.cache.bad import BadMedia, find_bad, without_bad
from evr1_core.config.schema import RunConfig
from evr1_core.data.part import write_part
from evr1_core.data.records import read_samples
from evr1_core.registry.hooks import load_hooks
from evr1_core.rollout.collect import sample_groups, score_groups
from evr1_core.rollout.groups import EncodedPrompt, Group
from evr1_core.rollout.identity import record_id, settings_id
from evr1_core.rollout.lengths import find_long, without_long
from evr1_core.rollout.pass_rates import PassRate, PassRates
from evr1_core.rollout.scoring import Scored
from evr1_core.train import session
from evr1_core.train.loop import sampling_of

Verdict = Literal["kept", "too easy", "too hard", "failed"]
Batch = asyncio.Task[list[PassRate]]


@frozen(kw_only=True)
class Limits:
    """A response passes from ``threshold`` on; a record is kept when its pass rate lies strictly between ``low`` and ``high``."""

    threshold: float = 0.5
    low: float = 0.0
    high: float = 1.0


@frozen(kw_only=True)
class Outcome:
    """What became of a record. ``rate``: its pass rate; None: it has none, since its media, its prompt or its judge failed."""

    sample: Sample
    verdict: Verdict
    rate: float | None
    measured: PassRate | None


class FilterPass:
    """The pass over one data file; a context manager. What was measured before, with the same settings, is not measured again.

    ``samples``: the records that a run would train on; ``todo``: those without a pass rate; ``notes``: what was left out and why.
    Raises Evr1Error for everything that would keep a run from starting.
    """

    def __init__(self, config: RunConfig, data: Path, rates: Path, *, k: int, limits: Limits) -> None:
        if config.lora.start:
            way = "name the merged model by --model, and set lora.start= (empty)"
            raise ConfigError([f"lora.start: the pass samples from a whole checkpoint; {way}"])
        self._config, self._data, self._limits = config, data, limits
        self._stamp = _stamp(data)
        self._stack = ExitStack()
        self._bad: list[BadMedia] = []
        every = read_samples([str(data)], config.data, split="train")
        self._numbers = {sample.uid: number for number, sample in enumerate(every)}
        hooks = load_hooks(config.plugins.strict)
        self.notes = list(hooks.notes)
        self.samples = session.without_dropped(every, "train", hooks)
        if not self.samples:
            raise DataError([f"{data}: listeners drop every record"])
        self._sampling = evolve(sampling_of(config.rollout), n=k)
        self._family = session.find_family(config)
        self._processor = session.load_processor(config.model.path)
        self._settings = settings_id(config, self._sampling)
        self._root = Path(config.data.media_root) if config.data.media_root else data.parent
        self._rates = PassRates(rates, settings=self._settings, threshold=limits.threshold)
        self.todo: list[Sample] = []

    def __enter__(self) -> FilterPass:
        with ExitStack() as stack:
            self._scorer = session.build_scorer(self._config, self._family.opens_thinking(self._processor))
            for reward in self._scorer.rewards.values():
                stack.callback(reward.close)
            self._prepare()
            stack.enter_context(self._rates)
            self.todo = [sample for sample in self._usable if self._measured(sample) is None]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def _prepare(self) -> None:
        """What a run does before it loads a model."""
        config = self._config
        self.notes += session.check_golds(config, self.samples, self._scorer, self._family)
        clips = session.build_cache(config, self._family)
        self._bad = find_bad(self.samples, clips)
        usable = without_bad(self.samples, self._bad, config.data)
        self._encoder = session.build_encoder(config, self._family, self._processor, clips)
        long = find_long(usable, self._encoder)
        self._usable = without_long(usable, long, config.rollout)
        self.notes += [f"left out: {each}" for each in [*self._bad, *long]]
        self._records = {sample.uid: record_id(sample, self._root) for sample in self._usable}

    def sample(self) -> Iterator[PassRate]:
        """Starts the engine, then samples the responses to what is to be done, stores the pass rates as they are known, and yields
        them. With nothing to do, no model is loaded."""
        if not self.todo:
            return iter(())
        config = self._config
        session.set_threads(config)
        runner = session.build_engine(config)
        self._stack.callback(runner.close)
        module = session.load_model(config, self._family) if runner.engine.in_process else None
        runner.run(runner.engine.start(config.model.path, self._family, self._processor, module))
        return self._sampled(runner)

    def _sampled(self, runner: session.EngineRunner) -> Iterator[PassRate]:
        """As many records at once as an engine in this process computes together; of another one, single records, so many of them
        under way as keep it busy."""
        appetite = runner.engine.appetite
        size, width = (appetite, 1) if runner.engine.in_process else (1, appetite)
        waiting = iter([self.todo[first : first + size] for first in range(0, len(self.todo), size)])
        going: set[Batch] = set()
        while True:
            done, going = runner.run(self._advanced(runner.engine, going, waiting, width))
            if not done:
                return
            failures = [error for task in done if (error := task.exception())]
            rows = [row for task in done if not task.exception() for row in task.result()]
            self._rates.add(rows)
            yield from rows
            if failures:
                runner.run(_ended(going))
                raise failures[0]

    async def _advanced(
        self, engine: RolloutEngine, going: set[Batch], waiting: Iterator[list[Sample]], width: int
    ) -> tuple[set[Batch], set[Batch]]:
        """(batches that are done, those under way), once one is done; nothing when all are."""
        going = going | {asyncio.create_task(self._batch(engine, samples)) for samples in islice(waiting, width - len(going))}
        return await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED) if going else (set(), set())

    async def _batch(self, engine: RolloutEngine, samples: Sequence[Sample]) -> list[PassRate]:
        prompts = self._encoded(samples)
        groups = await sample_groups(engine, prompts, self._sampling, f"{self._config.train.seed}:filter") if prompts else []
        return [self._row(*pair) for pair in zip(groups, score_groups(self._scorer, groups), strict=True)]

    def _encoded(self, samples: Sequence[Sample]) -> list[EncodedPrompt]:
        """The prompts of samples whose media can be decoded to the end, which no check before knows."""
        prompts: list[EncodedPrompt] = []
        for sample in samples:
            try:
                prompts += self._encoder.encode([sample])
            except MediaError as error:
                bad = BadMedia(uid=sample.uid, origin=sample.origin, path=error.path, kind=error.kind, reason=error.reason)
                self._bad.append(bad)
                without_bad(self.samples, self._bad, self._config.data)  # the settings may not allow one more
                self.notes.append(f"left out: {bad}")
        return prompts

    def _row(self, group: Group, scores: Sequence[Scored]) -> PassRate:
        sample = group.prompt.sample
        if all(score.accuracy is None for score in scores):
            self.notes.append(f"left out: {sample.origin}: record {sample.uid!r}: no response was judged ({scores[0].note})")
        return PassRate(
            settings=self._settings,
            record=self._records[sample.uid],
            uid=sample.uid,
            accuracies=tuple(score.accuracy for score in scores),
            truncated=sum(response.truncated for response in group.responses),
        )

    def _measured(self, sample: Sample) -> PassRate | None:
        record = self._records.get(sample.uid)
        return None if record is None else self._rates.find(sample.uid, record)

    def outcomes(self) -> list[Outcome]:
        """What became of each record, in the order of the file."""
        return [self._outcome(sample) for sample in self.samples]

    def _outcome(self, sample: Sample) -> Outcome:
        measured, limits = self._measured(sample), self._limits
        if measured is None:
            return Outcome(sample=sample, verdict="failed", rate=None, measured=None)
        rate = measured.rate(limits.threshold)
        verdict: Verdict = "kept" if keeps(rate, limits.low, limits.high) else "too hard" if rate <= limits.low else "too easy"
        return Outcome(sample=sample, verdict=verdict, rate=rate, measured=measured)

    def write(self, outcomes: Sequence[Outcome], out: Path) -> int:
        """Writes the kept rows of the data file, as they stand; how many. Raises DataError when there is none, or when the file
        is no longer what was read."""
        kept = [self._numbers[outcome.sample.uid] for outcome in outcomes if outcome.verdict == "kept"]
        if not kept:
            raise DataError([f"no record of {self._data} is kept, so nothing was written"])
        if _stamp(self._data) != self._stamp:
            raise DataError([f"{self._data}: was changed in the meantime; run the command again, which samples what is new"])
        write_part(self._data, kept, out)
        return len(kept)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise DataError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    return status.st_size, status.st_mtime_ns


async def _ended(going: set[Batch]) -> None:
    """Ends the batches under way; an engine that is gone fails them all, and one failure is reported."""
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)
