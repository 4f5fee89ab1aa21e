"""LongVideo-Reason-eval: reasoning about long videos."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import define

from evr1_core.api import Benchmark, BenchmarkPaths, DataError, EvalItem, Row, Skipped
from evr1_core.api.releases import choices_of, read_gold, split_question


@define(kw_only=True)
class LongVideoReason(Benchmark):
    """LongVideo-Reason-eval (arXiv:2507.07966): 1000 multiple-choice questions about long videos.

    Data: the test split of LongVideo-Reason/longvideo-reason and LongVideo-Reason/longvideo_eval_videos, whose archives unpack to
    `longvideo_eval_subset<N>/`. Normalised: `longvideoreason.json`, the 851 questions whose videos are `.mp4`, without types.
    Metric: accuracy, also by type: temporal, goal, plot, spatial.
    Protocol: none of its own.
    Pitfalls: the letters are far from even: always B scores 44. Rows of the release that hold no options, or a gold that is none of
    them, are left out and counted; some rows of the normalised form hold pieces of text as options, which are asked as they stand.
    """

    api = 1
    id = "longvideo_reason"
    title = "LongVideo-Reason-eval"
    size = 1000
    official = ("*test*.parquet", "data/test*.parquet", "*test*.json", "*test*.jsonl")
    normalised = ("longvideoreason.json", "longvideo_reason.json")

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        videos, text = row.any("videos"), row.text("problem").replace("<video>", "").strip()
        path = videos if isinstance(videos, str) else row.texts("videos")[0]
        try:
            question, options = split_question(row, text)
        except DataError as error:
            yield Skipped(origin=row.origin, reason=str(error))
            return
        choices, gold = choices_of(options), read_gold("mc", row.text("answer"), options)
        if gold not in choices["labels"]:
            yield Skipped(origin=row.origin, reason=f"the gold {row.text('answer')!r:.60} is none of its options")
            return
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=str(row.any("problem_id")),
            task="mc",
            question=question,
            **choices,
            gold=gold,
            video=Path(path).name,
            groups={"type": (row.text("problem_type"),)},
            origin=row.origin,
        )

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        name = Path(path).name
        folders = sorted(each.name for each in paths.folder.glob("longv*/"))
        return paths.medium(path, *(f"{folder}/{name}" for folder in folders))
