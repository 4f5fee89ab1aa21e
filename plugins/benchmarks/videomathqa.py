"""VideoMathQA: mathematics that is taught in videos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve

from evr1_core.api import Benchmark, EvalItem, Row, ScoredRow
from evr1_core.api.aggregates import clusters, grouped, means, percent
from evr1_core.api.releases import choices_of, normalised_item

PAIRS = 4  # of two choices, made of one question


@define(kw_only=True)
class VideoMathQA(Benchmark):
    """VideoMathQA (arXiv:2506.05349): 420 questions with five choices, and 1680 with two, four of them made of each question.

    Data: MBZUAI/VideoMathQA; the tables `mcq/*.parquet` and `multi_binary/*.parquet`, `videos/<videoID>.mp4` (.MP4, .mkv) and
    `subtitles/<videoID>.srt`. Normalised: `videomathqa.jsonl`.
    Metric: `mcq`, accuracy on five choices; `mbin_strict`, the share of questions of which all four pairs are right; `pooled`,
    accuracy over all rows.
    Protocol: with and without subtitles, answered at once and after reasoning.
    Pitfalls: `pooled` is pulled to the 50 % of pairs: guessing gives 44. A question of which not all four pairs were asked has no
    part in `mbin_strict`. An id belongs to a question and its pairs, five rows in all.
    """

    api = 1
    id = "videomathqa"
    title = "VideoMathQA"
    size = 2100
    official = ("m*/*.parquet", "m*/*.json*", "data/m*.parquet")
    normalised = ("videomathqa.jsonl", "videomathqa.json")
    metrics = ("mcq", "mbin_strict", "pooled")

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        video = row.text("videoID")
        item = EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=row.text("question_id"),
            task="mc",
            question=row.text("question"),
            **choices_of(row.texts("options")),
            gold=row.text("answer"),
            video=f"videos/{video}.mp4",
            subtitle=f"subtitles/{video}.srt",
            origin=row.origin,
        )
        yield _placed(item, row)

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield _placed(evolve(normalised_item(row, self.id), subtitle=f"subtitles/{row.text('video_id')}.srt"), row)

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        whole = [row for row in rows if row.item.cluster is None]
        pairs = [own for own in clusters(rows).values() if len(own) == PAIRS]
        found = {"mcq": means(whole)["accuracy"]} if whole else {}
        if pairs:
            found["mbin_strict"] = percent(min(row.scores["accuracy"] for row in own) for own in pairs)
        return {**found, "pooled": means(rows)["accuracy"], **grouped(rows)}


def _placed(item: EvalItem, row: Row) -> EvalItem:
    """The item in its groups, and a pair among those of its question."""
    pair = row.get("mbinary_id")
    groups = {"category": (row.text("category"),), "length": (row.text("length"),), "form": ("five" if pair is None else "pair",)}
    return evolve(item, groups=groups, cluster=None if pair is None else (str(item.source_id), int(pair)))
