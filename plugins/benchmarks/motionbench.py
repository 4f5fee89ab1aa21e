"""MotionBench: what moves in videos, and how."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, Skipped
from evr1_core.api.releases import choices_of, normalised_item, read_gold, split_question

HIDDEN = "NA"  # the answer of a question whose key is not published
FOLDERS = ("self-collected", "public-dataset")


@define(kw_only=True)
class MotionBench(Benchmark):
    """MotionBench (arXiv:2501.02955): 4018 questions with up to four choices about motion in short videos.

    Data: zai-org/MotionBench; `MotionBench/video_info.meta.jsonl`, `self-collected/`, `public-dataset/`. The clips of MedVid,
    SportsSloMo and HA-ViD are cut by their users, as the ends of their names and `mapping.json` say. Normalised:
    `motionbench.json`.
    Metric: accuracy, also by kind of question and by whether the authors made the video.
    Protocol: none of its own.
    Pitfalls: the paper counts 3715 questions, the file 4018. Questions whose answer is hidden, and the one that has a single choice
    (2047), are left out and counted; missing videos are failed rows.
    """

    api = 1
    id = "motionbench"
    title = "MotionBench"
    size = 4018
    official = ("MotionBench/video_info.meta.jsonl", "video_info.meta.jsonl")
    normalised = ("motionbench.json",)

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        for values in row.any("qa"):
            asked = evolve(row, values=values)
            if asked.text("answer") == HIDDEN:
                yield Skipped(origin=row.origin, reason=f"{asked.text('uid')}: its answer is not published")
                continue
            question, options = split_question(asked, asked.text("question"))
            if len(options) < 2:
                yield Skipped(origin=row.origin, reason=f"{asked.text('uid')}: it has a single choice")
                continue
            path = row.text("video_path")
            item = EvalItem(
                uid=f"{self.id}/{asked.text('uid')}",
                bench=self.id,
                source_id=asked.text("uid"),
                task="mc",
                question=question,
                **choices_of(options),
                gold=read_gold("mc", asked.text("answer"), options),
                video=path,
                origin=row.origin,
            )
            yield evolve(item, groups=_groups(row.text("question_type"), path))

    def from_normalised(self, row: Row) -> Iterable[EvalItem | Skipped]:
        if len(row.texts("options")) < 2:
            yield Skipped(origin=row.origin, reason=f"{row.any('problem_id')}: it has a single choice")
            return
        item = normalised_item(row, self.id)
        yield evolve(item, groups=_groups(row.text("original_question_type"), item.video))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        places = [f"{before}{path}" for before in ("", *(f"{folder}/" for folder in FOLDERS))]
        return paths.medium(*places, *(f"MotionBench/{place}" for place in places))


def _groups(kind: str, path: str) -> dict[str, tuple[str, ...]]:
    folder = path.split("/")[0]
    return {"type": (kind,), **({"origin": (folder,)} if folder in FOLDERS else {})}
