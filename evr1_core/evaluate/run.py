"""An evaluation from its settings to its reports."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from evr1_core.api import Benchmark, BenchmarkPaths, ConfigError, ModelFamily
from evr1_core.cache.child import Decoders
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import RolloutConfig, RunConfig
from evr1_core.config.sources import resolved
from evr1_core.evaluate.judging import Judging
from evr1_core.evaluate.loading import Loader
from evr1_core.evaluate.memory import Room, allowance
from evr1_core.evaluate.pipeline import Pipeline
from evr1_core.evaluate.progress import Progress
from evr1_core.evaluate.report import Summary, write_reports
from evr1_core.evaluate.responses import read_responses, score_responses
from evr1_core.evaluate.rows import RowFile
from evr1_core.evaluate.settings import EvalConfig, Settings
from evr1_core.evaluate.summary import summarised
from evr1_core.evaluate.work import LENGTH, Work, prompts_hash, read_annotations, settings_hash
from evr1_core.registry.hooks import Hooks, load_hooks
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.identity import checkpoint_id
from evr1_core.train import session


@frozen(kw_only=True)
class Model:
    """A checkpoint, its family and processor, and what names them in results. Responses made elsewhere need no checkpoint."""

    family: ModelFamily | None
    processor: Any
    identity: Mapping[str, str]


@define(kw_only=True)
class Evaluation:
    """One run over several benchmarks; :meth:`close` must follow. ``notes``: what to say before it starts."""

    settings: Settings
    config: EvalConfig
    model: Model
    works: Sequence[Work]
    notes: list[str] = field(factory=list)
    _files: ExitStack

    def close(self) -> None:
        """Closes the files of rows."""
        self._files.close()

    def ask(self) -> Judging:
        """Asks every question without a row, several benchmarks with one engine; a judge, if there is one, decides what waits."""
        with Progress(self.works) as progress:
            judging = Judging(client=self.config.judge, said=progress.said)
            self._submit_waiting(judging)
            if any(work.todo() for work in self.works):
                asyncio.run(self._asked(judging, progress))
            else:
                judging.finish()
                asyncio.run(judging.run())
        return judging

    def judge(self) -> Judging:
        """Judges the answers that wait for it."""
        self.config.judge.check()
        with Progress(self.works) as progress:
            judging = Judging(client=self.config.judge, said=progress.said)
            self._submit_waiting(judging)
            judging.finish()
            asyncio.run(judging.run())
        return judging

    def _submit_waiting(self, judging: Judging) -> None:
        for work in self.works:
            if self.config.judge.base_url and any(row["judge"] == "pending" for row in work.rows.values()):
                items = {item.uid: item for item in work.items}
                for uid, row in _waiting(work).items():
                    judging.submit(work, items[uid], row)

    def report(self) -> list[Summary]:
        """Writes the reports and tells the listeners."""
        hooks = load_hooks(strict=False)
        summaries: list[Summary] = [summarised(work, self.model.identity) for work in self.works]
        write_reports(Path(self.config.output), summaries)
        for work, summary in zip(self.works, summaries, strict=True):
            _tell(hooks, work, summary)
        return summaries

    def take(self, file: Path) -> Judging:
        """Scores the responses in a file."""
        given = read_responses(file, self.works)
        family = self.model.family
        with Progress(self.works) as progress, closing(decoding(self.config)) as decoders:
            caches = {work.id: frame_cache(work, family, decoders) for work in self.works} if family else {}
            judging = Judging(client=self.config.judge, said=progress.said)
            self._submit_waiting(judging)
            score_responses(self.works, given, family, caches, judging, progress)
            judging.finish()
            asyncio.run(judging.run())
        return judging

    async def _asked(self, judging: Judging, progress: Progress) -> None:
        run, family, processor = as_run(self.config), self.model.family, self.model.processor
        assert family is not None
        engine = build_plugin("engines", self.config.engine.name, self.config.engine.options, place="engine")
        module = session.load_model(run, family).eval() if engine.in_process else None
        decoders = decoding(self.config)
        threads = self.config.workers + self.config.judge.concurrency + 2  # the engine's own, and one to spare
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads))
        try:
            await engine.start(self.config.model.path, family, processor, module)
            pipeline = Pipeline(
                engine=engine,
                loader=Loader(family=family, processor=processor),
                works=self.works,
                caches={work.id: frame_cache(work, family, decoders) for work in self.works},
                judging=judging,
                workers=self.config.workers,
                room=Room(allowance(self.config.frames_gb)),
                said=progress.said,
            )
            await pipeline.run()
        finally:
            decoders.close()
            await engine.close()


def prepare(settings: Settings, *, retry_failed: bool = False, responses: Path | None = None) -> Evaluation:
    """Reads the annotations and the rows so far. Raises ConfigError, DataError and ModelError before anything heavy is loaded.

    ``responses``: where the answers come from, when no model is asked.
    """
    config = settings.config()
    check(config, asks=responses is None)
    benchmarks = [
        build_plugin("benchmarks", name, options, place=f"benchmarks.{name}") for name, options in config.benchmarks.items()
    ]
    model = _model(config, responses)
    notes: list[str] = []
    files = ExitStack()
    works = []
    try:
        for name, benchmark in zip(config.benchmarks, benchmarks, strict=True):
            works.append(_work(name, benchmark, settings, model, files, notes, retry_failed))
    except BaseException:
        files.close()
        raise
    return Evaluation(settings=settings, config=config, model=model, works=works, notes=notes, files=files)


def _work(
    name: str, benchmark: Benchmark, settings: Settings, model: Model, files: ExitStack, notes: list[str], retry_failed: bool
) -> Work:
    config = settings.config(benchmark, model.family.grid if model.family else None)
    paths = BenchmarkPaths(folder=Path(config.data) / benchmark.id, source=config.source)
    annotations = read_annotations(benchmark, paths)
    prompts = prompts_hash(benchmark, annotations.items, config)
    named = settings_hash(benchmark, annotations, prompts, config, {k: v for k, v in model.identity.items() if k != "path"})
    file = files.enter_context(RowFile(Path(config.output) / benchmark.id / "rows.jsonl"))
    rows, others = file.rows(named)
    if others:
        notes.append(f"{benchmark.id}: {others} rows in {file.path} were made under other settings; they stay and are not used")
    if retry_failed:
        rows = {uid: row for uid, row in rows.items() if row["status"] == "answered"}
    return Work(
        name=name,
        benchmark=benchmark,
        paths=paths,
        config=config,
        annotations=annotations,
        settings=named,
        prompts=prompts,
        file=file,
        rows=rows,
    )


def _model(config: EvalConfig, responses: Path | None) -> Model:
    family = session.find_family(as_run(config)) if config.model.path else None
    if responses is not None:
        identity = {"path": str(responses), "responses": sha256(responses.read_bytes()).hexdigest()[:LENGTH]}
        return Model(family=family, processor=None, identity=identity | ({"family": type(family).__name__} if family else {}))
    assert family is not None
    processor = session.load_processor(config.model.path)
    return Model(family=family, processor=processor, identity=_identity(config, family, processor))


def check(config: EvalConfig, *, asks: bool = True) -> None:
    """Raises ConfigError for what must be given and is not there. ``asks``: a model is needed."""
    problems = []
    if asks and not config.model.path:
        problems.append("--model: must be given")
    if not config.benchmarks:
        problems.append("--benchmarks: name some, or say all; `evr1 eval --list` shows them")
    if not config.data or not Path(config.data).is_dir():
        problems.append(f"--data: there is no folder {config.data}" if config.data else "--data: must be given")
    if not config.engine.name:
        problems.append("engine.name: must be given")
    if problems:
        raise ConfigError(problems)
    if config.judge.base_url or config.judge.model:
        config.judge.check()


def as_run(config: EvalConfig) -> RunConfig:
    """The part of the settings that training has too, in its form."""
    return RunConfig(model=config.model, rollout=RolloutConfig(engine=config.engine))


def decoding(config: EvalConfig) -> Decoders:
    """The processes that decode, one for each video that is loaded at a time."""
    return Decoders(size=config.workers, time_limit=config.cache.time_limit, memory_mb=config.cache.memory_limit)


def frame_cache(work: Work, family: ModelFamily, decoders: Decoders) -> FrameCache:
    """The frames of one benchmark, in the folder that all share."""
    config = work.config
    folder = Path(config.cache.folder) if config.cache.folder else Path(config.output) / "cache"
    root, threads = work.paths.folder, 1 if config.workers > 1 else 0
    return FrameCache(config.cache, config.frames, family.grid, media_root=root, folder=folder, decoders=decoders, threads=threads)


def _identity(config: EvalConfig, family: ModelFamily, processor: Any) -> dict[str, str]:
    return {
        "path": config.model.path,
        "checkpoint": checkpoint_id(Path(config.model.path)),
        "family": type(family).__name__,
        "family_options": str(resolved(config.model.family.options)),
        "dtype": config.model.dtype,
        "engine": config.engine.name,
        "opens_thinking": str(family.opens_thinking(processor)).lower(),
    }


def _waiting(work: Work) -> dict[str, Mapping[str, Any]]:
    """The rows, with their responses, that wait for a judge."""
    found, _ = work.file.rows(work.settings, text=True)
    return {item.uid: found[item.uid] for item in work.items if found.get(item.uid, {}).get("judge") == "pending"}


def _tell(hooks: Hooks, work: Work, summary: Summary) -> None:
    rows = [{**work.rows[item.uid]} for item in work.items if item.uid in work.rows]
    hooks.call("evr1_benchmark_scored", name=work.id, rows=rows, summary=summary)


def say(lines: Sequence[str]) -> None:
    """Lines for the person at the terminal, apart from the results."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)
