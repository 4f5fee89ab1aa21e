"""LVBench: questions about very long videos."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of, read_gold, split_question


@define(kw_only=True)
class LVBench(Benchmark):
    """LVBench (arXiv:2406.08035): 1549 questions with four choices about 103 videos of an hour on average.

    Data: THUDM/LVBench; `video_info.meta.jsonl` and videos from YouTube, `videos/<key>.mp4`. Normalised: `lvbench.json`, the 1492
    questions about the 99 videos that were still to be had, without groups.
    Metric: accuracy, also by kind of video and by ability; a question counts in each of its abilities.
    Protocol: none of its own; without transcripts. With videos this long the limit of frames decides much.
    Pitfalls: options stand inside the question; ten questions have choices of the same text. `time_reference`, where the answer is
    to be seen, is not shown to the model.
    """

    api = 1
    id = "lvbench"
    title = "LVBench"
    size = 1549
    official = ("video_info.meta.jsonl", "data/video_info.meta.jsonl")
    normalised = ("lvbench.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        for values in row.any("qa"):
            asked = evolve(row, values=values)
            question, options = split_question(asked, asked.text("question"))
            yield EvalItem(
                uid=f"{self.id}/{asked.text('uid')}",
                bench=self.id,
                source_id=asked.text("uid"),
                task="mc",
                question=question,
                **choices_of(options),
                gold=read_gold("mc", asked.text("answer"), options),
                video=f"videos/{row.text('key')}.mp4",
                groups={"type": (row.text("type"),), "ability": _several(asked.any("question_type"))},
                origin=row.origin,
            )


def _several(kinds: str | Sequence[str]) -> tuple[str, ...]:
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)
