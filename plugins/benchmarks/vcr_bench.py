"""VCR-Bench: reasoning about videos, with choices, in words, in time and in space."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Sequence

from attrs import define, evolve

from evr1_core.api import Benchmark, BenchmarkPaths, BoxSpace, EvalItem, Prompt, PromptStyle, Row, Scores
from evr1_core.api.answers import Mode, box, extract, one_box, parse_json
from evr1_core.api.grading import in_pixels, pixel_space, span_of
from evr1_core.api.metrics import iou_1d, iou_2d
from evr1_core.api.questions import ask
from evr1_core.api.releases import choices_of, normalised_item, read_gold
from evr1_core.api.spaces import converted
from evr1_core.api.subtitles import Line

SPAN_OVER, BOX_OVER = 0.7, 0.5  # an overlap must be larger
BOX = "one box [x1, y1, x2, y2]"


@define(kw_only=True)
class VCRBench(Benchmark):
    """VCR-Bench (arXiv:2504.07956): 1034 questions about 859 videos; 510 with choices, 524 open, of these 66 spans and 144 boxes.

    Data: VLM-Reasoning/VCR-Bench; `v1/meta_info_video.json` and `v1/videos`. Normalised: `vcrbench.json`, without dimensions.
    Metric: accuracy, also by dimension, duration and form. Choices by letter; a span with an IoU over 0.7; a box with an IoU over
    0.5; other answers by a judge who sees the question.
    Protocol: the authors let a language model take the answers out of the replies; here they are read by rule.
    Pitfalls: golds of boxes are pixels of the source, answers come in the space of the model. Spans and boxes are never judged.
    """

    api = 1
    id = "vcr_bench"
    title = "VCR-Bench"
    size = 1034
    official = ("v1/meta_info_video.json", "meta_info_video.json")
    normalised = ("vcrbench.json", "vcr_bench.json")

    def from_official(self, row: Row) -> Iterable[EvalItem]:
        options = row.texts("choices") if row.any("multiple-choice") else ()
        seconds = row.number("duration")
        length = "<=60 s" if seconds <= 60 else "60-300 s" if seconds <= 300 else ">300 s"
        item = EvalItem(
            uid=f"{self.id}/{row.index}",
            bench=self.id,
            source_id=row.text("id"),
            task="mc" if options else "open",
            question=row.text("question"),
            **choices_of(options),
            gold=read_gold("mc", row.text("answer"), options) if options else row.text("answer"),
            video=posixpath.normpath(row.text("video_path")),
            duration=seconds,
            groups={"dimension": (row.text("dimension"),), "duration": (length,)},
            origin=row.origin,
        )
        yield _typed(item)

    def from_normalised(self, row: Row) -> Iterable[EvalItem]:
        yield _typed(normalised_item(row, self.id))

    def locate(self, path: str, paths: BenchmarkPaths) -> str | None:
        return paths.medium(path, f"v1/{path}", f"v1/videos/{path}", f"videos/{path}")

    def prompt(self, item: EvalItem, style: PromptStyle, transcript: Sequence[Line] = ()) -> Prompt:
        return ask(item, style, transcript=transcript, what=BOX if "box" in item.meta else "")

    def parse(self, item: EvalItem, response: str, mode: Mode) -> str | None:
        if "box" not in item.meta:
            return super().parse(item, response, mode)
        found = one_box(extract(response, mode=mode), mode=mode)
        return None if found is None else json.dumps(found)

    def score(self, item: EvalItem, answer: str | None, boxes: BoxSpace | None) -> Scores:
        if "box" in item.meta:
            guess = box(parse_json(answer))
            return {"accuracy": float(guess is not None and iou_2d(in_pixels(item, guess, boxes), item.meta["box"]) > BOX_OVER)}
        if item.task == "tgrounding":
            span = span_of(answer)
            return {"accuracy": float(span is not None and iou_1d(span, item.gold) > SPAN_OVER)}  # type: ignore[arg-type]
        return super().score(item, answer, boxes)

    def gold_answer(self, item: EvalItem, boxes: BoxSpace | None) -> str | None:
        if "box" not in item.meta:
            return super().gold_answer(item, boxes)
        own = pixel_space(item, boxes)
        return json.dumps(converted(item.meta["box"], own, boxes or own))


def _typed(item: EvalItem) -> EvalItem:
    """The item in its form: an open gold of two numbers is a span, one of four a box; the rest of the open ones has a judge."""
    if item.task == "mc":
        return evolve(item, groups={**item.groups, "form": ("mc",)})
    value = parse_json(str(item.gold))
    if (found := box(value)) is not None:
        return evolve(item, groups={**item.groups, "form": ("box",)}, meta={"box": found})
    match value:
        case [int() | float() as start, int() | float() as end]:
            return evolve(item, task="tgrounding", gold=(start, end), groups={**item.groups, "form": ("span",)})
    return evolve(item, judge="equiv", groups={**item.groups, "form": ("open",)})
