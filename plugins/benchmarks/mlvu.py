"""MLVU: questions about long videos, by task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import define, field, validators

from evr1_core.api import Benchmark, BenchmarkPaths, DataError, EvalItem, Row, ScoredRow, Skipped
from evr1_core.api.aggregates import grouped, macro, means
from evr1_core.api.releases import choices_of, label_of, read_release

DEV_OFFICIAL, DEV_NORMALISED = ("json/*.json", "MLVU/json/*.json"), ("mlvu-dev.json",)
IN_WORDS = frozenset({"subPlot", "sub_scene", "summary"})  # tasks of the dev split whose answers are texts


@define(kw_only=True)
class MLVU(Benchmark):
    """MLVU (arXiv:2406.04264): 502 multiple-choice questions of nine tasks about 349 long videos.

    Data: MLVU/MLVU_Test with its keys of 2025, or the mirror sy1998/MLVU_Test; `video/<name>.mp4`. The dev split, 2175 questions of
    seven tasks, is MLVU/MVLU. Normalised: `mlvu-test.json` and `mlvu-dev.json`, which do not say the task.
    Metric: `accuracy` over all questions; `m_avg`, the authors' headline, the unweighted mean of the accuracies of the tasks, where
    the tasks are known.
    Protocol: six choices on test, four on dev.
    Pitfalls: published numbers of Qwen models are `m_avg` on dev, not on test. Captions and summaries (G-Avg) are left out.
    """

    api = 1
    id = "mlvu"
    title = "MLVU"
    size = 502
    official = ("test_mcq_gt.json", "test-ground-truth/test_mcq_gt.json", "test*/*.parquet", "data/test*.parquet")
    normalised = ("mlvu-test.json", "mlvu.json")
    metrics = ("accuracy", "m_avg")

    split: Literal["test", "dev"] = field(
        default="test", validator=validators.in_(("test", "dev")), metadata={"help": "questions of the test or the dev split"}
    )

    def files(self, paths: BenchmarkPaths) -> tuple[Path, ...]:
        if self.split == "test":
            return super().files(paths)
        return paths.official(DEV_OFFICIAL) or paths.normalised(DEV_NORMALISED)

    def load(self, paths: BenchmarkPaths) -> Iterator[EvalItem | Skipped]:
        if self.split == "test":
            yield from super().load(paths)
            return
        files = self.files(paths)
        if not files:
            raise DataError([f"{self.id}: there are no annotations of the dev split below {paths.folder}"])
        read = self.from_official if paths.official(DEV_OFFICIAL) else self.from_normalised
        for row in read_release(files):
            yield from read(row)

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        task = row.text("question_type")
        if task in IN_WORDS:
            yield Skipped(origin=row.origin, reason=f"{task} asks for a text")
            return
        options = choices_of(row.texts("candidates"))
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=str(row.get("question_id")) if row.get("question_id") is not None else None,
            task="mc",
            question=row.text("question"),
            **options,
            gold=label_of(row, options, row.text("answer")),
            video=f"video/{Path(row.text('video')).name}",
            duration=None if row.get("duration") is None else row.number("duration"),
            groups={"task": (task,)},
            origin=row.origin,
        )

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        name = Path(path).name  # the dev split keeps a folder for each task
        return paths.medium(path, *(f"{each.relative_to(paths.folder)}/{name}" for each in sorted(paths.folder.glob("video/*/"))))

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        average = macro(rows, "task")
        return {**means(rows), **({} if average is None else {"m_avg": average}), **grouped(rows)}
