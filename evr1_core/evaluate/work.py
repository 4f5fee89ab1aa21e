"""What is to be done for one benchmark: its items, where their media lie, and what its rows depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from evr1_core.api import Benchmark, BenchmarkPaths, DataError, EvalItem, Skipped
from evr1_core.config.sources import resolved
from evr1_core.evaluate.rows import Row, RowFile, light
from evr1_core.evaluate.settings import EvalConfig

LENGTH = 16  # hexadecimal digits of a hash
FORMAT = 1  # of rows


@frozen(kw_only=True, eq=False)
class Annotations:
    """The items of a benchmark, in order, what was left out, and the hash of the files that they come from."""

    items: tuple[EvalItem, ...]
    skipped: tuple[Skipped, ...]
    files: tuple[Path, ...]
    sha256: str


@frozen(kw_only=True, eq=False)
class Work:
    """One benchmark of a run. ``name``: what it was asked for by; ``settings``: hash of all that decides the rows; ``rows``: the
    rows so far, by uid."""

    name: str
    benchmark: Benchmark
    paths: BenchmarkPaths
    config: EvalConfig
    annotations: Annotations
    settings: str
    prompts: str
    file: RowFile
    rows: dict[str, Row] = field(factory=dict)

    @property
    def id(self) -> str:
        """Of the benchmark."""
        return self.benchmark.id

    @property
    def items(self) -> Sequence[EvalItem]:
        """The items of this run."""
        items = self.annotations.items
        return items[: self.config.limit] if self.config.limit else items

    def todo(self) -> list[EvalItem]:
        """The items without a row."""
        return [item for item in self.items if item.uid not in self.rows]

    def record(self, row: Row) -> None:
        """Keeps a row, in the file and here; here without the response, which may be long."""
        self.file.append(row)
        self.rows[row["uid"]] = light(row)


def read_annotations(benchmark: Benchmark, paths: BenchmarkPaths) -> Annotations:
    """Loads a benchmark. Raises DataError when a row cannot be read or a uid is there twice."""
    files = benchmark.files(paths)
    found = list(benchmark.load(paths))
    items = [each for each in found if isinstance(each, EvalItem)]
    places: dict[str, str] = {}
    problems = []
    for item in items:
        if item.uid in places:
            problems.append(f"{item.origin}: uid {item.uid!r} stands at {places[item.uid]} too")
        places[item.uid] = item.origin
    if not items and not problems:
        problems = [f"{benchmark.id}: {', '.join(map(str, files)) or paths.folder} holds no question"]
    if problems:
        raise DataError(problems)
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    skipped = tuple(each for each in found if isinstance(each, Skipped))
    return Annotations(items=tuple(items), skipped=skipped, files=files, sha256=digest.hexdigest())


def prompts_hash(benchmark: Benchmark, items: Sequence[EvalItem], config: EvalConfig) -> str:
    """Of the text of all prompts: it changes with their wording, whatever wrote it."""
    digest = hashlib.sha256()
    for item in items:
        for part in benchmark.prompt(item, config.style).parts:
            digest.update((part if isinstance(part, str) else part.kind).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:LENGTH]


def settings_hash(
    benchmark: Benchmark, annotations: Annotations, prompts: str, config: EvalConfig, model: Mapping[str, str]
) -> str:
    """Of all that a response and its score depend on; not of how many are asked at a time, where files lie, or who judges."""
    values = {
        "format": FORMAT,
        "benchmark": benchmark.id,
        "options": asdict(benchmark),
        "annotations": annotations.sha256,
        "prompts": prompts,
        "subtitles": config.prompt.subtitles,
        "frames": resolved(config.frames),
        "decoding": resolved(config.decoding),
        "max_prompt_tokens": config.max_prompt_tokens,
        "model": dict(model),
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:LENGTH]


def groups(items: Sequence[EvalItem]) -> Iterator[list[EvalItem]]:
    """Items that show the same part of the same video, together, in order of first appearance: its frames are read once."""
    found: dict[tuple[Any, ...], list[EvalItem]] = {}
    for item in items:
        found.setdefault((item.video, item.clip), []).append(item)
    yield from found.values()


def placed(work: Work, item: EvalItem) -> EvalItem:
    """The item with the paths under which its media lie; those that are missing as they were."""
    video, *images = (work.benchmark.locate(path, work.paths) or path for path in (item.video, *item.images))
    return evolve(item, video=video, images=tuple(images))
