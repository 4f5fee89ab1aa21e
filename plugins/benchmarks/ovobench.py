"""OVO-Bench: questions to a video that is still going on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import define, evolve, field

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, PromptStyle, Row, ScoredRow
from evr1_core.api.aggregates import by_value, grouped, macro, means
from evr1_core.api.questions import ask
from evr1_core.api.releases import choices_of, normalised_item
from evr1_core.api.samples import Prompt
from evr1_core.api.subtitles import Line

CATEGORIES: Mapping[str, str] = {
    **dict.fromkeys(("EPM", "HLD", "ASI"), "backward"),
    **dict.fromkeys(("OJR", "STU", "OCR", "ATR", "ACR", "FPD"), "realtime"),
    **dict.fromkeys(("REC", "SSR", "CRR"), "forward"),
}
WORDING: Mapping[str, str] = {
    "SSR": 'The video so far is part of a tutorial. Is this step being carried out right now, where the video ends: "{}"?',
    "CRR": 'Does the video, above all where it ends, show enough to answer this question: "{}"?',
}
CHUNKS = "chunked_videos"
SOURCES = "src_videos"


@define(kw_only=True)
class OvoBench(Benchmark):
    """OVO-Bench (arXiv:2501.05510): 3035 questions at moments of 644 videos, of which only what has passed may be seen.

    Data: JoeLeelyf/OVO-Bench; `ovo_bench_new.json` (also below `data/`) and `chunked_videos/<id>.mp4`, `<id>_<i>.mp4` for the i-th
    moment, or, with `videos = "source"`, `src_videos/`. Normalised: `ovobench.json`.
    Metric: `macro`, the mean of the categories backward, realtime and forward, each the mean of its tasks; `accuracy` of all.
    Protocol: choices by letter; REC (how often was something done) by whole number; SSR (is this step going on) and CRR (is there
    enough to answer) by yes or no. Every moment is a question of its own.
    Pitfalls: "2 of 3" is not 23, and "know" is no "no". A missing chunk is a failure: the whole video would show the future.
    Most golds of HLD are the choice that the video does not tell.
    """

    api = 1
    id = "ovobench"
    title = "OVO-Bench"
    size = 3035
    official = ("ovo_bench_new.json", "data/ovo_bench_new.json")
    normalised = ("ovobench.json",)
    metrics = ("macro", "accuracy")

    videos: Literal["chunked", "source"] = field(default="chunked", metadata={"help": "chunked: cut files; source: whole ones"})

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        task, name = row.text("task"), row.text("id")
        common: dict[str, Any] = {"bench": self.id, "groups": _groups(row, task), "origin": row.origin}
        if CATEGORIES[task] != "forward":
            options = choices_of(row.texts("options"))
            place, clip = self._shown(row, name)
            yield EvalItem(
                uid=f"{self.id}/{name}",
                source_id=name,
                task="mc",
                question=row.text("question"),
                **options,
                gold=_letter(row, options["labels"]),
                video=place,
                clip=clip,
                **common,
            )
            return
        for number, moment in enumerate(row.any("test_info")):
            at = row.with_values(**moment)
            place, clip = self._shown(at, f"{name}_{number}")
            yield EvalItem(
                uid=f"{self.id}/{name}_{number}",
                source_id=f"{name}_{number}",
                task="count" if task == "REC" else "yesno",
                question=_question(at, task),
                gold=int(at.number("count")) if task == "REC" else bool(at.number("type")),
                video=place,
                clip=clip,
                **common,
            )

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield evolve(normalised_item(row, self.id), groups=_groups(row, row.text("ovo_task")))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path) if path.startswith(f"{SOURCES}/") else paths.medium(path, f"{CHUNKS}/{path}")

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        (task,) = item.groups["task"]
        return ask(item, style, WORDING.get(task, "{}").format(item.question), transcript)

    def aggregate(self, rows: Sequence[ScoredRow]) -> Mapping[str, float]:
        found = {category: macro(own, "task") for category, own in by_value(rows, "category").items()}
        categories = {f"category={category}/macro": value for category, value in found.items() if value is not None}
        return {"macro": sum(categories.values()) / len(categories), **means(rows), **categories, **grouped(rows)}

    def _shown(self, row: Row, name: str) -> tuple[str, tuple[float, float]]:
        video = f"{SOURCES}/{row.text('video')}" if self.videos == "source" else f"{CHUNKS}/{name}.mp4"
        return video, (0.0, row.number("realtime"))


def _groups(row: Row, task: str) -> Mapping[str, tuple[str, ...]]:
    if task not in CATEGORIES:
        raise row.problem(f"unknown task {task!r}; known: {', '.join(CATEGORIES)}")
    return {"task": (task,), "category": (CATEGORIES[task],)}


def _letter(row: Row, labels: Sequence[str]) -> str:
    number = row.number("gt")
    if number not in range(len(labels)):
        raise row.problem(f"gt is {number:g}, of {len(labels)} options counted from 0")
    return labels[int(number)]


def _question(row: Row, task: str) -> str:
    if task == "REC":
        return f"How many times did they {row.text('activity')}?"
    return row.text("step") if task == "SSR" else row.text("question")
