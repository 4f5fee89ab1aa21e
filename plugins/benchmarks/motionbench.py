"""MotionBench: fine movements in short videos."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, Skipped
from evr1_core.api.releases import choices_of, normalised_item, split_question

SOURCES = ("self-collected", "public-dataset")


@define(kw_only=True)
class MotionBench(Benchmark):
    """MotionBench (arXiv:2501.02955): 4018 questions with a published key (of 8052), with two to four choices.

    Data: THUDM/MotionBench (now zai-org); `MotionBench/video_info.meta.jsonl`, one line a video, and the folders `self-collected/`
    and `public-dataset/`, there or beside `MotionBench/`. Normalised: `motionbench.json`.
    Metric: accuracy; also by kind of question.
    Protocol: nothing special.
    Pitfalls: questions with the key "NA" are a hidden test and left out, as is one that has a single choice; the clips of MedVid,
    SportsSloMo and HA-ViD must be cut by oneself, and where they are missing their questions count as wrong: `evr1 eval --list`
    says how many videos there are; 42 pairs of video and question occur twice.
    """

    api = 1
    id = "motionbench"
    title = "MotionBench"
    size = 4018
    official = ("MotionBench/video_info.meta.jsonl", "video_info.meta.jsonl")
    normalised = ("motionbench.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        for number, each in enumerate(row.any("qa")):
            one = row.with_values(**each)
            if one.text("answer") == "NA":
                yield Skipped(origin=row.origin, reason="the key is hidden (answer NA)")
                continue
            question, options = split_question(one, one.text("question"))
            if len(options) < 2:
                yield Skipped(origin=row.origin, reason=_single(one.text("uid")))
                continue
            yield EvalItem(
                uid=f"{self.id}/{row.index}-{number}",
                bench=self.id,
                source_id=one.text("uid"),
                task="mc",
                question=question,
                **choices_of(options),
                gold=one.text("answer"),
                video=one.text("video_path").removeprefix("./"),
                groups={"question_type": (one.text("question_type"),)},
                origin=row.origin,
            )

    def from_normalised(self, row: Row) -> Iterable[EvalItem | Skipped]:
        if len(row.texts("options")) < 2:
            yield Skipped(origin=row.origin, reason=_single(row.text("problem_id")))
        else:
            yield evolve(normalised_item(row, self.id), groups={"question_type": (row.text("original_question_type"),)})

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        below = (path, *(f"{source}/{path}" for source in SOURCES))
        return paths.medium(*below, *(f"MotionBench/{each}" for each in below))


def _single(name: str) -> str:
    return f"question {name} has a single choice"
