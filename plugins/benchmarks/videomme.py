"""Video-MME: questions about short, medium and long videos of every domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row
from evr1_core.api.releases import choices_of, normalised_item


@define(kw_only=True)
class VideoMME(Benchmark):
    """Video-MME (arXiv:2405.21075): 2700 questions with four choices about 900 videos of 11 seconds to an hour.

    Data: lmms-lab/Video-MME; `videomme/test-*.parquet`, the unpacked videos `videos/<videoID>.mp4` (or `data/`) and transcripts
    `subtitle/<videoID>.srt`. Normalised: `videomme.json`.
    Metric: accuracy, also by duration, domain, sub-category and kind of task.
    Protocol: without or with subtitles (`prompt.subtitles`); with them, the lines at the sampled frames, of 744 videos that have a
    transcript; the others get a sentence that there is none.
    Pitfalls: ten questions have two choices of the same text, where only the letter decides; a reply such as "Based on the video"
    is no B.
    """

    api = 1
    id = "videomme"
    title = "Video-MME"
    size = 2700
    official = ("videomme/test-*.parquet", "test-*.parquet")
    normalised = ("videomme.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        yield EvalItem(
            bench=self.id,
            task="mc",
            question=row.text("question"),
            **choices_of(row.texts("options")),
            gold=row.text("answer"),
            video=f"videos/{row.text('videoID')}.mp4",
            origin=row.origin,
            **_of(row),
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield evolve(normalised_item(row, self.id), **_of(row))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, path.replace("videos/", "data/", 1))


def _of(row: Row) -> Mapping[str, Any]:
    """What both forms of a row say under the same keys."""
    axes = {"duration": "duration", "domain": "domain", "sub_category": "sub_category", "task": "task_type"}
    return {
        "uid": f"videomme/{row.text('question_id')}",
        "source_id": row.text("question_id"),
        "subtitle": f"subtitle/{row.text('videoID')}.srt",
        "groups": {axis: (row.text(key),) for axis, key in axes.items()},
    }
