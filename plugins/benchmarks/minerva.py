"""MINERVA: questions about videos that take several steps to answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from evr1_core.api import Benchmark, EvalItem, Row, Skipped
from evr1_core.api.releases import choices_of


@define(kw_only=True)
class Minerva(Benchmark):
    """MINERVA (arXiv:2505.00681): 1515 questions with five choices about 223 videos, each with a written line of reasoning.

    Data: `minerva.json` of google-deepmind/neptune (mirror: lmms-lab-eval/minerva) and videos from YouTube, `<video_id>.mp4`;
    the normalised `minerva.json` has the 1431 questions whose 211 videos were still to be had, without groups.
    Metric: accuracy, also by type of question, of which one can have several, and by domain.
    Protocol: the paper also gives transcripts.
    Pitfalls: ids of videos may begin with `-`; what the mirror cannot read it scores by a random letter, here it is wrong. The
    lines of reasoning are not scored.
    """

    api = 1
    id = "minerva"
    title = "MINERVA"
    size = 1515
    official = ("minerva.json", "data/*.parquet")
    normalised = ("minerva.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        if row.get("solution") is not None:  # the normalised file has the same name
            yield from self.from_normalised(row)
            return
        options = [str(row.any(f"answer_choice_{number}")) for number in range(5)]
        choices = choices_of(options)
        number = row.number("answer_id")
        if number not in range(5):
            raise row.problem(f"answer_id must be 0 to 4; is {number:g}")
        kinds = tuple(each.strip() for each in row.text("question type", "question_type").split(",") if each.strip())
        yield EvalItem(
            uid=f"{self.id}/{row.text('key')}",
            bench=self.id,
            source_id=row.text("key"),
            task="mc",
            question=row.text("question"),
            **choices,
            gold=choices["labels"][int(number)],
            video=f"{row.text('video_id')}.mp4",
            groups={"type": kinds, "domain": (row.text("split"),)},
            origin=row.origin,
        )
