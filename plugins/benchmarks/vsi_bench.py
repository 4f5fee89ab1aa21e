"""VSI-Bench: sizes, distances, directions and orders in videos of rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from attrs import define, evolve, field

from evr1_core.api import Benchmark, EvalItem, Row, ScoredRow, Skipped
from evr1_core.api.aggregates import by_value, grouped, means
from evr1_core.api.items import Task
from evr1_core.api.releases import choices_of, normalised_item, read_gold

DIRECTION = "object_rel_direction"
REGRESSION = frozenset({"object_counting", "object_size_estimation", "object_abs_distance", "room_size_estimation"})
MULTIPLE_CHOICE = frozenset({"object_rel_distance", "route_planning", "obj_appearance_order"})
LEVELS = frozenset(f"{DIRECTION}_{level}" for level in ("easy", "medium", "hard"))


@define(kw_only=True)
class VsiBench(Benchmark):
    """VSI-Bench (arXiv:2412.14171): 5130 questions about the space in 288 videos of rooms, 2490 with choices and 2640 for a number.

    Data: nyu-visionx/VSI-Bench; `test.jsonl` or the tables `test*.parquet`, and the unpacked arkitscenes.zip, scannet.zip and
    scannetpp.zip: `<dataset>/<scene_name>.mp4`. Normalised: `vsibench.json`.
    Metric: `overall`, the mean of the 8 tasks, with relative direction as the mean of its 3 levels; `accuracy` of the questions
    with choices and `mra`, the mean relative accuracy of the numbers, apart.
    Protocol: the authors read the first token of at most 16, greedy; here the answer may stand in a sentence.
    Pitfalls: an error of exactly a threshold counts as within it; no unit is converted (metres, square metres, centimetres for
    sizes); the debiased subset (`debiased`) leaves out the questions flagged as pruned.
    """

    api = 1
    id = "vsi_bench"
    title = "VSI-Bench"
    size = 5130
    official = ("test.jsonl", "test-*.parquet", "data/test-*.parquet", "test_*.parquet")
    normalised = ("vsibench.json",)
    metrics = ("overall", "accuracy", "mra")

    debiased: bool = field(default=False, metadata={"help": "only the questions that the authors did not prune as biased"})

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        if self.debiased and row.any("pruned"):
            yield Skipped(origin=row.origin, reason="pruned from the debiased subset")
            return
        kind, options = row.text("question_type"), row.get("options") or ()
        task: Task = "regression" if _task(row, kind) in REGRESSION else "mc"
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=row.text("id"),
            task=task,
            question=row.text("question"),
            **choices_of(options),
            gold=read_gold(task, row.text("ground_truth"), options),
            video=f"{row.text('dataset')}/{row.text('scene_name')}.mp4",
            groups={"task": (_task(row, kind),), "type": (kind,)},
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        if self.debiased:
            raise row.problem("the normalised form does not say what is pruned; the debiased subset needs the official release")
        kind = row.text("original_question_type")
        yield evolve(normalised_item(row, self.id), groups={"task": (_task(row, kind),), "type": (kind,)})

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        tasks = {
            f"task={task}/score": fmean(value for kind in by_value(own, "type").values() for value in means(kind).values())
            for task, own in by_value(rows, "task").items()
        }
        return {"overall": fmean(tasks.values()), **means(rows), **tasks, **grouped(rows, ("type",))}


def _task(row: Row, kind: str) -> str:
    if kind in LEVELS:
        return DIRECTION
    if kind not in REGRESSION | MULTIPLE_CHOICE:
        raise row.problem(f"unknown question type {kind!r}; known: {', '.join(sorted(REGRESSION | MULTIPLE_CHOICE | LEVELS))}")
    return kind
