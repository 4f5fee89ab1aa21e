"""The contract of benchmarks."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import get_args

from evr1_core.api import Benchmark, BoxSpace, EvalItem, Media, PromptStyle, ScoredRow, Scores
from evr1_core.api.answers import Mode
from evr1_core.api.benchmarks import Form
from evr1_core.api.questions import response
from evr1_core.testing.hostile import GARBLED, HUGE_ANSWERS, SECONDS, timed

FRAME = BoxSpace(kind="norm1000", width=8192, height=8192, resized_width=448, resized_height=448)  # larger than any gold box
STYLES = tuple(PromptStyle(form=form) for form in get_args(Form))
MODES: tuple[Mode, ...] = get_args(Mode)
JUDGED = {True: "Judgement: 1", False: "Judgement: 0"}


def check_benchmark(benchmark: Benchmark, items: Sequence[EvalItem]) -> None:
    """``items``: some records of the benchmark, loaded from its own files.

    Demands, for every item: a prompt that shows the video, the question and every choice; its gold answer, in the form that each
    style asks for, scores 1 in everything, by the rules or with a judge that agrees; a wrong one scores below 1, and 0 with a
    judge that does not; no answer scores 0 under the same names. No text of any form or length raises, takes long or leaves
    [0, 1]. The aggregate holds the headline: 100 when all is right, 0 without answers.
    """
    _check_declaration(benchmark)
    repeated = [uid for uid, times in Counter(item.uid for item in items).items() if times > 1]
    assert not repeated, f"uids are not unique: {repeated[:3]}"
    assert items, "no items to check"
    for item in items:
        _check_item(benchmark, item)
    for item in {item.task: item for item in items}.values():
        _check_hostile(benchmark, item)
    _check_aggregate(benchmark, items)


def _check_declaration(benchmark: Benchmark) -> None:
    for name in ("id", "title", "size"):
        assert getattr(benchmark, name, None), f"{name} is not declared"
    assert benchmark.metrics, "metrics is empty; its first is the headline"
    assert (type(benchmark).__doc__ or "").strip(), "it has no docstring"


def _check_item(benchmark: Benchmark, item: EvalItem) -> None:
    assert item.bench == benchmark.id, f"{item.uid}: bench is {item.bench!r}, not {benchmark.id!r}"
    assert item.uid.startswith(f"{benchmark.id}/"), f"{item.uid}: a uid begins with the id of the benchmark and a /"
    none = _scored(benchmark, item, None)
    assert not any(none.values()), f"{item.uid}: no answer scores {none}"
    for style in STYLES:
        _check_prompt(benchmark, item, style)
        gold = benchmark.gold_answer(item, FRAME)
        if gold is None:
            continue
        for mode in MODES:
            text = response(item.task, style, gold)
            right = _graded(benchmark, item, text, mode, agrees=True)
            assert right.keys() == none.keys(), f"{item.uid}: scores {sorted(right)}, and {sorted(none)} without an answer"
            assert all(math.isclose(value, 1.0, abs_tol=1e-9) for value in right.values()), (
                f"{item.uid}: its gold {text!r} scores {right}"
            )
            wrong = wrong_answer(item)
            scores = _graded(benchmark, item, response(item.task, style, wrong), mode, agrees=False)
            assert scores[next(iter(scores))] < 1.0, f"{item.uid}: the wrong answer {wrong!r} scores {scores}"


def _check_prompt(benchmark: Benchmark, item: EvalItem, style: PromptStyle) -> None:
    prompt = benchmark.prompt(item, style)
    video, *others = prompt.parts
    assert video == Media(kind="video", path=item.video, span=item.clip), (
        f"{item.uid}: the prompt begins with {video}, not the video"
    )
    text = "\n".join(part for part in others if isinstance(part, str))
    assert item.question.strip() in text, f"{item.uid}: the prompt does not ask its question"
    missing = [] if item.task == "caption_mc" else [choice for choice in item.choices if choice not in text]
    assert not missing, f"{item.uid}: the prompt lacks the choices {missing}"


def wrong_answer(item: EvalItem) -> str:
    """An answer of the right form that is far off."""
    gold = item.gold
    if item.task == "mc":
        return next(label for label in (*item.labels, "Z") if label != gold)
    if isinstance(gold, bool):
        return "no" if gold else "yes"
    if isinstance(gold, int | float):
        return str(int(abs(gold) * 3 + 100))
    if item.task in ("tgrounding", "stgrounding"):
        return '{"time": [900000, 900001], "boxes": {"900000": [1, 1, 2, 2]}}'
    return "nothing of the kind"


def _graded(benchmark: Benchmark, item: EvalItem, text: str, mode: Mode, *, agrees: bool) -> Scores:
    """The scores of a response, by the rules and then by a judge who thinks alike."""
    answer = benchmark.parse(item, text, mode)
    scores = _scored(benchmark, item, answer)
    if answer is None or not benchmark.needs_judge(item, answer, scores):
        return scores
    return benchmark.judge(item, answer, text, lambda prompt: JUDGED[agrees])


def _scored(benchmark: Benchmark, item: EvalItem, answer: str | None) -> Scores:
    scores = benchmark.score(item, answer, FRAME)
    assert scores, f"{item.uid}: no scores"
    assert all(0.0 <= value <= 1.0 for value in scores.values()), f"{item.uid}: {answer!r:.80} scores {scores}"
    return scores


def _check_hostile(benchmark: Benchmark, item: EvalItem) -> None:
    names = benchmark.score(item, None, FRAME).keys()
    for text in (*GARBLED, *HUGE_ANSWERS):
        for mode in MODES:
            scores, seconds = timed(partial(_read, benchmark, item, text, mode), time.process_time)
            assert seconds <= SECONDS, f"{item.uid}, {text[:40]!r}: took {seconds:.1f} s"
            assert scores.keys() == names, f"{item.uid}, {text[:40]!r}: scores {sorted(scores)}, declared {sorted(names)}"


def _read(benchmark: Benchmark, item: EvalItem, text: str, mode: Mode) -> Scores:
    return _scored(benchmark, item, benchmark.parse(item, text, mode))


def _check_aggregate(benchmark: Benchmark, items: Sequence[EvalItem]) -> None:
    nothing = [ScoredRow(item=item, answer=None, scores=benchmark.score(item, None, FRAME)) for item in items]
    perfect = [ScoredRow(item=row.item, answer="", scores=dict.fromkeys(row.scores, 1.0)) for row in nothing]
    for rows, wanted in ((nothing, 0.0), (perfect, 100.0)):
        found: Mapping[str, float] = benchmark.aggregate(rows)
        headline = benchmark.metrics[0]
        assert headline in found, f"aggregate gives {sorted(found)}, without the headline {headline!r}"
        assert math.isclose(found[headline], wanted, abs_tol=1e-9), f"{headline} is {found[headline]}, not {wanted}"
        for name, value in found.items():
            assert math.isfinite(value), f"{name} is {value}"
