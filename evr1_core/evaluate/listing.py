"""Which benchmarks there are, and what of their data is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from evr1_core.api import Benchmark, BenchmarkPaths, Evr1Error
from evr1_core.evaluate.settings import EvalConfig
from evr1_core.evaluate.work import read_annotations
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.loading import build_plugin

HEAD = ("benchmark", "title", "published", "metric", "annotations", "questions", "videos")


@frozen(kw_only=True)
class Found:
    """What there is of one benchmark. ``problem``: why it cannot be run; empty when it can."""

    benchmark: Benchmark
    annotations: str = "-"
    questions: int = 0
    videos: int = 0
    videos_named: int = 0
    problem: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        counted = (str(self.questions), f"{self.videos} of {self.videos_named}") if self.questions else ("-", "-")
        own = self.benchmark
        return own.id, own.title, str(own.size), own.metrics[0], self.annotations, *counted


def installed() -> list[str]:
    """The names of all benchmarks that can be asked for by a bare name."""
    catalog = Catalog.scan()
    return sorted({ref.name for ref in catalog.group("benchmarks") if catalog.problem(ref) is None})


def with_annotations(config: EvalConfig) -> list[str]:
    """The names of the benchmarks whose annotations are there."""
    named = {
        name: build_plugin("benchmarks", name, config.benchmarks.get(name, {}), place=f"benchmarks.{name}") for name in installed()
    }
    folder = Path(config.data)
    return [
        name
        for name, benchmark in named.items()
        if benchmark.files(BenchmarkPaths(folder=folder / benchmark.id, source=config.source))
    ]


def survey(config: EvalConfig, names: Sequence[str]) -> Iterator[Found]:
    """What is found of each benchmark below ``config.data``."""
    for name in names:
        benchmark = build_plugin("benchmarks", name, config.benchmarks.get(name, {}), place=f"benchmarks.{name}")
        yield _found(benchmark, config)


def _found(benchmark: Benchmark, config: EvalConfig) -> Found:
    if not config.data:
        return Found(benchmark=benchmark)
    paths = BenchmarkPaths(folder=Path(config.data) / benchmark.id, source=config.source)
    files = benchmark.files(paths)
    if not files:
        wanted = [*(f"{benchmark.id}/{pattern}" for pattern in benchmark.official), *benchmark.normalised]
        return Found(benchmark=benchmark, annotations="missing", problem=f"none of {', '.join(wanted)} in {config.data}")
    try:
        items = read_annotations(benchmark, paths).items
    except Evr1Error as error:
        return Found(benchmark=benchmark, annotations="unreadable", problem=str(error))
    videos = {item.video for item in items}
    there = sum(benchmark.locate(video, paths) is not None for video in videos)
    kind = "official" if paths.official(benchmark.official) else "normalised"
    problem = f"{len(videos) - there} videos are missing in {paths.folder}" if there < len(videos) else ""
    return Found(
        benchmark=benchmark, annotations=kind, questions=len(items), videos=there, videos_named=len(videos), problem=problem
    )
