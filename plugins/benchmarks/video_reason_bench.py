"""VideoReasonBench: operations on a state that is seen only at one end of the video."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, BoxSpace, EvalItem, Prompt, PromptStyle, Row, Skipped
from evr1_core.api.answers import Mode, concluded
from evr1_core.api.questions import ask, media_of
from evr1_core.api.releases import normalised_item
from evr1_core.api.subtitles import Line, transcript_text

SKILLS: Mapping[str, tuple[str, str]] = {  # dimension of the release -> level, skill
    "order_operation": ("1", "order_operation"),
    "counting_operation": ("1", "counting_operation"),
    "order_state": ("2", "infer_state"),
    "counting_state": ("2", "infer_state"),
    "comparison_state": ("2", "comparison_state"),
    "prediction_state": ("3", "prediction_state"),
    "prediction_operation": ("3", "prediction_operation"),
}
MARKER = "Final Answer:"
ENDING = f"Provide a summary of the final answer after '{MARKER}'"
_OPERATIONS = re.compile(r"_op(\d+)_")


@define(kw_only=True)
class VideoReasonBench(Benchmark):
    """VideoReasonBench (arXiv:2505.23359): 1440 open questions about 240 videos of six demonstrations.

    Data: lyx97/reasoning_videos, `videos.zip` unpacked to `videos/`, and `questions/<demo>.json` of the authors' code. Normalised:
    `videoreasonbench.json`, without dimensions.
    Metric: accuracy by a judge: every item of the gold must be there. Also by level, skill, demonstration, states and operations.
    Protocol: the authors show Qwen models 64 frames of up to 448 x 448 pixels and let them write 2048 to 4096 tokens.
    Pitfalls: only what follows "Final Answer" counts; a reply without it is wrong. The 240 questions for operations that lead to a
    state have no gold, only a simulation could score them: they are left out and counted. Normalised, their gold is the text
    `None`, as is that of four others, which cannot be told from them: 244 are left out.
    """

    api = 1
    id = "video_reason_bench"
    title = "VideoReasonBench"
    size = 1440
    official = ("questions/*.json",)
    normalised = ("videoreasonbench.json", "video_reason_bench.json")

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        kind, demo, video = row.text("dim"), row.file.stem, row.text("video")
        if kind not in SKILLS:
            raise row.problem(f"unknown dim {kind!r}; known: {', '.join(SKILLS)}")
        if kind == "prediction_operation":
            yield Skipped(origin=row.origin, reason="operations that lead to a state are scored by a simulation, which is not here")
            return
        level, skill = SKILLS[kind]
        groups = {"level": (level,), "skill": (skill,), "states": (f"{row.number('num_state'):g}",)}
        yield EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=row.key or None,
            task="open",
            question=row.text("question"),
            gold=row.text("answer"),
            video=video if "/" in video else f"{demo}/{video}",
            groups={**groups, "demo": (demo,), "operations": (_band(row.number("num_operation")),)},
            judge="complete",
            origin=row.origin,
        )

    def from_normalised(self, row: Row) -> Iterable[EvalItem | Skipped]:
        item = normalised_item(row, self.id)
        if item.gold == "None":
            yield Skipped(origin=row.origin, reason="the gold is 'None': for all but four of these only a simulation could score")
            return
        operations = _OPERATIONS.search(item.video)
        if operations is None:
            raise row.problem(f"the name of the video must say the operations, as in state1_op5_end.mp4; is {item.video!r}")
        groups = {"demo": (Path(item.video).parent.name,), "operations": (_band(float(operations[1])),)}
        yield evolve(item, groups=groups, judge="complete")

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, f"videos/{path}")

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        question = item.question if MARKER in item.question else f"{item.question}\n\n{ENDING}"
        if style.form != "direct":
            what = f'"{MARKER}" and the whole answer' if style.form == "tags" else "the whole answer"
            return ask(item, style, question, transcript, what)
        lines = [question] if style.subtitles == "none" else [transcript_text(transcript), question]
        return Prompt(parts=(*media_of(item), "\n".join(lines)))  # the question itself says how to answer

    def parse(self, item: EvalItem, response: str, mode: Mode) -> str | None:
        return concluded(response, anchored=True)

    def gold_answer(self, item: EvalItem, boxes: BoxSpace | None) -> str | None:
        return f"{MARKER} {item.gold}"


def _band(operations: float) -> str:
    return "5-9" if operations <= 9 else "10-14"
