"""MVBench: twenty tasks that one frame does not solve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, ScoredRow, Skipped
from evr1_core.api.aggregates import grouped, macro, means
from evr1_core.api.releases import choices_of, label_of, normalised_item

STAR, STA, CLEVRER, PERCEPTION = "star/Charades_v1_480", "sta/sta_video", "clevrer/video_validation", "perception/videos"
FOLDERS = {  # of each subtask, in the order of the alphabet, in which the normalised form numbers them
    "action_antonym": "ssv2_video",
    "action_count": PERCEPTION,
    "action_localization": STA,
    "action_prediction": STAR,
    "action_sequence": STAR,
    "character_order": PERCEPTION,
    "counterfactual_inference": CLEVRER,
    "egocentric_navigation": "vlnqa",
    "episodic_reasoning": "tvqa/frames_fps3_hq",
    "fine_grained_action": "Moments_in_Time_Raw/videos",
    "fine_grained_pose": "nturgbd",
    "moving_attribute": CLEVRER,
    "moving_count": CLEVRER,
    "moving_direction": CLEVRER,
    "object_existence": CLEVRER,
    "object_interaction": STAR,
    "object_shuffle": PERCEPTION,
    "scene_transition": "scene_qa/video",
    "state_change": PERCEPTION,
    "unexpected_action": "FunQA_test/test",
}
CUT = frozenset({STAR, STA})  # videos of which only a part may be shown
EACH = 200  # questions


@define(kw_only=True)
class MVBench(Benchmark):
    """MVBench (arXiv:2311.17005): 4000 questions with two to five choices, 200 for each of twenty tasks.

    Data: OpenGVLab/MVBench; `json/<subtask>.json` and the unpacked archives, as `star/Charades_v1_480/...` (or below `video/`).
    Normalised: `mvbench.json`, 3586 questions of 18 subtasks, which are told by their numbers and folders.
    Metric: accuracy; `macro`, the mean over subtasks, which the authors report; accuracy of each subtask.
    Protocol: videos of STAR and STA are cut to the seconds of the question, in both forms.
    Pitfalls: others show those 788 videos whole, which makes numbers incomparable; episodic reasoning comes as folders of stills,
    not as videos, and is left out, so that 3800 remain; a later revision replaced repeated questions.
    """

    api = 1
    id = "mvbench"
    title = "MVBench"
    size = 4000
    official = ("json/*.json",)
    normalised = ("mvbench.json",)
    metrics = ("accuracy", "macro")

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        subtask = row.file.stem
        if subtask not in FOLDERS:
            raise row.problem(f"unknown subtask {subtask!r}; known: {', '.join(FOLDERS)}")
        if subtask == "episodic_reasoning":
            yield Skipped(origin=row.origin, reason="its video is published as a folder of stills")
            return
        options = choices_of(row.texts("candidates"))
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            task="mc",
            question=row.text("question"),
            **options,
            gold=label_of(row, options, row.text("answer")),
            video=f"{FOLDERS[subtask]}/{row.text('video')}",
            clip=_clip(row, FOLDERS[subtask]),
            groups={"subtask": (subtask,)},
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        item, number = normalised_item(row, self.id), int(row.number("problem_id")) - 1
        subtask = [*FOLDERS][number // EACH] if 0 <= number < EACH * len(FOLDERS) else ""
        if not subtask or not item.video.startswith(f"{FOLDERS[subtask]}/"):
            raise row.problem(f"the number {number + 1} is not one of a subtask with a video {item.video}")
        yield evolve(item, groups={"subtask": (subtask,)}, clip=_clip(row, FOLDERS[subtask]))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, f"video/{path}")

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        return {**means(rows), "macro": macro(rows, "subtask") or 0.0, **grouped(rows)}


def _clip(row: Row, folder: str) -> tuple[float, float] | None:
    return (row.number("start"), row.number("end")) if folder in CUT else None
