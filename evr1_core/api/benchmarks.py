"""The base class of benchmarks: reading, asking, parsing, scoring, judging, and what they share for each task."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from attrs import define

from evr1_core.api import aggregates, grading, questions, rubrics
from evr1_core.api.answers import Mode
from evr1_core.api.clips import BoxSpace
from evr1_core.api.errors import DataError
from evr1_core.api.items import EvalItem, Form, Gold, PromptStyle, ScoredRow, Scores, Skipped, Task
from evr1_core.api.releases import BenchmarkPaths, Row, normalised_item, read_release
from evr1_core.api.samples import Prompt
from evr1_core.api.subtitles import Line

__all__ = [
    "Benchmark",
    "BenchmarkPaths",
    "EvalItem",
    "Form",
    "Gold",
    "PromptStyle",
    "Row",
    "ScoredRow",
    "Scores",
    "Skipped",
    "Task",
]


@define(kw_only=True)
class Benchmark(ABC):
    """A set of questions about videos and how answers to them are scored. A plugin is an attrs class; its fields are its options.

    ``id`` is the plugin's name; ``size`` the published number of records. ``official`` are patterns of its annotation files below
    its folder, alternatives in order of preference; ``normalised`` names of files in the normalised form, likewise. ``metrics``:
    names in ``aggregate``, the headline first. ``protocols``: settings of this benchmark that differ from a preset's, such as
    ``{"qwen3_vl": {"fps": 4.0}}``.

    A benchmark defines :meth:`from_official`, or :meth:`load` where rows have to be seen together. Everything else has a default
    by task.
    """

    api: ClassVar[int]
    id: ClassVar[str]
    title: ClassVar[str]
    size: ClassVar[int]
    official: ClassVar[tuple[str, ...]] = ()
    normalised: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)
    protocols: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def files(self, paths: BenchmarkPaths) -> tuple[Path, ...]:
        """The annotation files that :meth:`load` reads; none when there are none."""
        return paths.official(self.official) or paths.normalised(self.normalised)

    def load(self, paths: BenchmarkPaths) -> Iterator[EvalItem | Skipped]:
        """The items, in a fixed order, and what is left out. Raises DataError, with its place, for a row that cannot be read."""
        if files := paths.official(self.official):
            read = self.from_official
        elif files := paths.normalised(self.normalised):
            read = self.from_normalised
        else:
            names = ", ".join((*(f"{paths.folder}/{each}" for each in self.official), *self.normalised))
            raise DataError([f"{self.id}: there are no annotations; looked for {names}"])
        for row in read_release(files):
            yield from read(row)

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        """The items of one row of the official release."""
        raise DataError([f"{row.origin}: {self.id} does not read this file"])

    def from_normalised(self, row: Row) -> Iterable[EvalItem | Skipped]:
        """The items of one row in the normalised form: that of :func:`evr1_core.api.releases.normalised_item`."""
        yield normalised_item(row, self.id)

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        """Where a video or image of an item lies below the benchmark's folder; None when it is missing."""
        return paths.medium(path)

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        """Video, images and question. ``transcript``: the lines at the sampled frames, when the style wants subtitles."""
        return questions.ask(item, style, transcript=transcript)

    def parse(self, item: EvalItem, response: str, mode: Mode) -> str | None:
        """The answer in a response, in the canonical form of :func:`evr1_core.api.grading.read`; None when there is none.

        Nothing is taken from reasoning. Strict: what is ambiguous is no answer; lenient: the last conclusion counts.
        """
        return grading.read(item, response, mode)

    def score(self, item: EvalItem, answer: str | None, boxes: BoxSpace | None) -> Scores:
        """Scores in [0, 1] by name. None scores 0 under the same names. ``boxes``: the space of predicted boxes; None: pixels."""
        return grading.rate(item, answer, boxes)

    def needs_judge(self, item: EvalItem, answer: str | None, scores: Scores) -> bool:
        """Whether a judge has the last word: the item names a rubric, there is an answer, and the rules gave nothing for it."""
        return item.judge is not None and answer is not None and not any(scores.values())

    def judge(self, item: EvalItem, answer: str, response: str, ask: rubrics.Ask) -> Scores:
        """Scores by the item's rubric. ``ask`` gives a judge's reply to a prompt, or raises NotJudgedError.

        Raises UnclearVerdictError when replies cannot be read, which counts as wrong and as a failure of the judge.
        """
        return {"accuracy": float(rubrics.judged(item, answer, ask))}

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        """The mean of every score in percent, the headline among them, then of every group: ``duration=short/accuracy``."""
        return {**aggregates.means(rows), **aggregates.grouped(rows)}

    def gold_answer(self, item: EvalItem, boxes: BoxSpace | None) -> str | None:
        """The gold as a model would write it, boxes in its space; None where there is none in words (a caption, a simulation)."""
        return grading.gold_answer(item, boxes)
