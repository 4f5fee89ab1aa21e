"""From a response to a row: parsed and scored in both modes, or failed with a reason."""

from __future__ import annotations

from typing import Any, Literal

from attrs import asdict, evolve, frozen

from evr1_core.api import Benchmark, BoxSpace, Clip, EvalItem, UnclearVerdictError
from evr1_core.api.answers import Mode, layout
from evr1_core.api.rubrics import Ask
from evr1_core.evaluate.rows import Row

Failure = Literal["media", "prompt", "engine"]
OPEN = "<think>"
MODES: tuple[Mode, ...] = ("lenient", "strict")


@frozen(kw_only=True)
class Response:
    """What a model said. ``opened``: the chat template had opened its reasoning. ``boxes``: the space of its boxes."""

    text: str
    truncated: bool = False
    num_tokens: int | None = None
    prompt_tokens: int | None = None
    opened: bool = False
    boxes: BoxSpace | None = None


def seen(item: EvalItem, clip: Clip) -> EvalItem:
    """The item with frame size and duration of what was shown, where the annotations do not say them."""
    meta = clip.meta
    if meta is None:
        return item
    size = item.size or (meta.source_width, meta.source_height)
    return evolve(item, size=size, duration=meta.duration if item.duration is None else item.duration)


def scored(benchmark: Benchmark, item: EvalItem, response: Response, settings: str) -> dict[str, Any]:
    """The row of an answered question. ``judge`` is ``pending`` where a judge has the last word: until then the scores are 0."""
    text = f"{OPEN}{response.text}" if response.opened else response.text
    answers = {mode: benchmark.parse(item, text, mode) for mode in MODES}
    scores = {mode: benchmark.score(item, answer, response.boxes) for mode, answer in answers.items()}
    pending = benchmark.needs_judge(item, answers["lenient"], scores["lenient"])
    return {
        "uid": item.uid,
        "settings": settings,
        "status": "answered",
        "answer": answers["lenient"],
        "strict_answer": answers["strict"],
        "scores": dict(scores["lenient"]),
        "strict_scores": dict(scores["strict"]),
        "judge": "pending" if pending else "",
        "truncated": response.truncated or layout(text).open_reasoning,
        "num_tokens": response.num_tokens,
        "prompt_tokens": response.prompt_tokens,
        "opened": response.opened,
        "boxes": response.boxes and asdict(response.boxes),
        "response": response.text,
    }


def failed(benchmark: Benchmark, item: EvalItem, settings: str, kind: Failure, error: str) -> dict[str, Any]:
    """The row of a question that could not be asked or answered: wrong, and counted."""
    scores = dict(benchmark.score(item, None, None))
    empty = {"answer": None, "strict_answer": None, "scores": scores, "strict_scores": scores, "judge": "", "truncated": False}
    return {"uid": item.uid, "settings": settings, "status": kind, "error": error, **empty}


def judged(benchmark: Benchmark, item: EvalItem, row: Row, ask: Ask) -> dict[str, Any]:
    """The row with a judge's verdict. Replies that cannot be read count as wrong and as ``failed``.

    Raises NotJudgedError when there is no reply: the row stays to be judged.
    """
    note = ""
    try:
        scores = dict(benchmark.judge(item, row["answer"], row["response"], ask))
        verdict = "judged"
    except UnclearVerdictError as error:
        scores, verdict, note = dict(row["scores"]), "failed", str(error)
    same = row["strict_answer"] == row["answer"]
    strict = scores if same else dict(row["strict_scores"])
    return {**row, "scores": scores, "strict_scores": strict, "judge": verdict, "note": note}
