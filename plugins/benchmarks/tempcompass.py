"""TempCompass: what changes over time in short videos, asked in four styles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Row, Scores, Skipped
from evr1_core.api.answers import Mode, extract, option_letter, plain, truth
from evr1_core.api.grading import read
from evr1_core.api.releases import choices_of, read_gold, read_release, split_question

MC, YES_NO, MATCHING, CAPTIONING = STYLES = ("multi-choice", "yes_no", "caption_matching", "captioning")  # folders or files
LETTERS = {"1": "A", "2": "B", "A": "A", "B": "B"}
_OPTION = re.compile(r"(?:Option|Sentence|Caption) ?([12AB]) ?: ?", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:option|sentence|caption) ?[(]?([12AB])\b[)]?", re.IGNORECASE)
_BARE = re.compile(r"(^|\banswer(?: is)?:? ?)[(]?([12])[)]?(?=[.:] |[.:]?$)", re.IGNORECASE)


@define(kw_only=True)
class TempCompass(Benchmark):
    """TempCompass (arXiv:2403.00476): 7540 questions about 410 videos: 1580 with choices, 2453 for yes or no, 1503 for the matching
    of two captions, and 2004 captions to be written.

    Data: lmms-lab/TempCompass, tables `<style>/test-*.parquet`, or the authors' `questions/<style>.json`; `videos/<video_id>.mp4`;
    `meta_info.json` for the fine aspects. Normalised: `tempcompass.json`, without groups.
    Metric: accuracy; also by style, by aspect (action, direction, speed, order, attribute change), by both, and by fine aspect.
    Protocol: captions are asked for by the question alone; a judge answers the linked question from the caption. A judge also
    decides on replies from which the rules read no choice.
    Pitfalls: without a judge captions cannot be scored: `captioning: false` leaves them out, and 5536 questions remain, which must
    be said with the score. Two captions are named Option 1, Sentence A or Caption A; here they are choices A and B.
    """

    api = 1
    id = "tempcompass"
    title = "TempCompass"
    size = 7540
    official = ("*/test-*.parquet", "questions/*.json")
    normalised = ("tempcompass.json",)

    captioning: bool = field(default=True, metadata={"help": "also the captions, which need a judge"})

    def load(self, paths: BenchmarkPaths) -> Iterator[EvalItem | Skipped]:
        kinds = _fine_aspects(paths.folder / "meta_info.json")
        for each in Benchmark.load(self, paths):
            if isinstance(each, EvalItem) and (kind := kinds.get((Path(each.video).stem, *each.groups.get("aspect", ())))):
                yield evolve(each, groups={**each.groups, "fine_aspect": (kind,)})
            else:
                yield each

    def from_official(self, row: Row) -> Iterable[EvalItem | Skipped]:
        if "dim" in row.values:
            yield self._item(row, row.text("video_id"), row.text("dim"), f"{row.index}")
            return
        for aspect, asked in row.values.items():  # the authors' form: lists by aspect
            for number, values in enumerate(asked or ()):
                yield self._item(evolve(row, values=values), row.key, aspect, f"{row.index}-{aspect}-{number}")

    def _item(self, row: Row, video: str, aspect: str, name: str) -> EvalItem | Skipped:
        style = row.file.stem if row.file.suffix == ".json" else row.file.parent.name
        if style not in STYLES:
            raise row.problem(f"unknown style {style!r}; known: {', '.join(STYLES)}")
        if style == CAPTIONING and not self.captioning:
            return Skipped(origin=row.origin, reason="captions need a judge (captioning: false)")
        return EvalItem(
            uid=f"{self.id}/{name}",
            bench=self.id,
            video=f"videos/{video.removesuffix('.mp4')}.mp4",
            groups={"style": (style,), "aspect": (aspect,), "style_aspect": (f"{style} {aspect}",)},
            origin=row.origin,
            **_asked(row, style),
        )

    def parse(self, item: EvalItem, response: str, mode: Mode) -> str | None:
        candidate = extract(response, mode=mode)
        if candidate is None or item.task == "caption_mc":
            return candidate or None
        if item.meta.get("style") != MATCHING:
            return read(item, response, mode) or candidate or None
        text = _NAMED.sub(lambda match: LETTERS[match[1].upper()], plain(candidate))
        text = _BARE.sub(lambda match: f"{match[1]}{LETTERS[match[2]]}", text)
        return option_letter(text, item.options, mode=mode) or candidate or None

    def needs_judge(self, item: EvalItem, answer: str | None, scores: Scores) -> bool:
        decided = (*item.labels, "yes", "no") if item.task != "caption_mc" else ()
        return item.judge is not None and answer is not None and answer not in decided


def _asked(row: Row, style: str) -> dict[str, Any]:
    """The fields of an item that say what is asked and what is right."""
    text, answer, meta = row.text("question"), row.text("answer"), {"style": style}
    if style == YES_NO:
        return {"task": "yesno", "question": text, "gold": truth(answer), "judge": "equiv", "meta": meta}
    if style == CAPTIONING:
        question, options = split_question(row, row.text("mc_question"))
        gold = read_gold("mc", row.text("mc_answer", "answer"), options)
        linked = {**meta, "mc_question": question}
        return {"task": "caption_mc", "question": text, **choices_of(options), "gold": gold, "judge": "caption_mc", "meta": linked}
    if style == MATCHING:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        question = "\n".join(line for line in lines if not _OPTION.match(line))
        choices = tuple(line[match.end() :] for line in lines if (match := _OPTION.match(line)))
        named = _OPTION.match(answer)
        known: dict[str, Any] = {"labels": ("A", "B")[: len(choices)], "choices": choices}
        known["gold"] = LETTERS[named[1].upper()] if named else answer
        return {"task": "mc", "question": question, **known, "judge": "equiv", "meta": meta}
    question, options = split_question(row, text)
    known = {**choices_of(options), "gold": read_gold("mc", answer, options)}
    return {"task": "mc", "question": question, **known, "judge": "equiv", "meta": meta}


def _fine_aspects(file: Path) -> Mapping[tuple[str, ...], str]:
    if not file.is_file():
        return {}
    return {
        (row.key, aspect): "order" if aspect == "order" else str(value["type"])
        for row in read_release([file])
        for aspect, value in row.any("eval_dim").items()
        if isinstance(value, Mapping) and (aspect == "order" or "type" in value)
    }
