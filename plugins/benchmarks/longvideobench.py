"""LongVideoBench: questions that refer to moments of long videos."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from evr1_core.api import Benchmark, EvalItem, Row
from evr1_core.api.releases import choices_of

ABSENT = "N/A"  # an option of the tables that is not there


@define(kw_only=True)
class LongVideoBench(Benchmark):
    """LongVideoBench (arXiv:2407.15754), validation: 1337 questions with two to five choices about 753 videos of up to an hour.

    Data: longvideobench/LongVideoBench; `lvb_val.json` (or its table), `videos/<video_path>` and `subtitles/<subtitle_path>`.
    Normalised: `longvideobench.json`, without groups and transcripts.
    Metric: accuracy, also by duration (15, 60, 600, 3600 s), category of question, topic and level.
    Protocol: without or with subtitles. The authors put the lines between the frames; here those at the sampled frames stand in
    front of the question. Their clock starts at `starting_timestamp_for_subtitles`.
    Pitfalls: some questions quote subtitles, which no model can answer without. The authors take a random choice for a reply that
    cannot be read, here it is wrong.
    """

    api = 1
    id = "longvideobench"
    title = "LongVideoBench"
    size = 1337
    official = ("lvb_val.json", "validation-*.parquet", "data/validation-*.parquet")
    normalised = ("longvideobench.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        listed = row.texts("candidates") if row.get("candidates") is not None else None
        columns = (str(text) for number in range(5) if (text := row.get(f"option{number}")) is not None)
        options = choices_of([text for text in (columns if listed is None else listed) if text != ABSENT])
        right = row.number("correct_choice")
        if right not in range(len(options["labels"])):
            raise row.problem(f"correct_choice must be 0 to {len(options['labels']) - 1}; is {right:g}")
        offset, subtitle = row.get("starting_timestamp_for_subtitles"), row.get("subtitle_path")
        axes = {"duration": "duration_group", "category": "question_category", "topic": "topic_category", "level": "level"}
        yield EvalItem(
            uid=f"{self.id}/{row.text('id')}",
            bench=self.id,
            source_id=row.text("id"),
            task="mc",
            question=row.text("question"),
            **options,
            gold=options["labels"][int(right)],
            video=f"videos/{row.text('video_path')}",
            subtitle=f"subtitles/{subtitle}" if subtitle else None,
            subtitle_offset=float(offset or 0.0),
            duration=None if row.get("duration") is None else row.number("duration"),
            groups={axis: (row.text(key),) for axis, key in axes.items()},
            origin=row.origin,
        )
