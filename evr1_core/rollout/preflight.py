"""Feeds records their own gold before the first step: a gold that does not score 1 would teach the wrong thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evr1_core.api.clips import BoxSpace
from evr1_core.api.errors import BadGoldError
from evr1_core.api.samples import Sample
from evr1_core.rollout.scoring import Response, Scored, Scorer, score_all

NEARLY_ONE = 1 - 1e-6  # boxes are converted to the space of the prediction and back

BoxSpaces = Callable[[Sample], BoxSpace | None]


def preflight(samples: Sequence[Sample], scorer: Scorer, per_task: int = 0, *, box_space: BoxSpaces | None = None) -> list[str]:
    """Problems, one line each: ``file:line: record uid (type): reason``; empty when every gold scores 1.

    Checks ``per_task`` records of each problem type, spread evenly over the file; 0: all. Each gold goes through the routed
    reward in the form of a prediction: JSON for grounding, boxes in the space that ``box_space`` gives for the record. A record
    that a judge did not judge is listed too. Raises DataError for a problem type that nobody serves.
    """
    scorer.check_tasks(samples)
    problems: list[str] = []
    responses: list[Response] = []
    for sample in drawn(samples, per_task):
        space = box_space(sample) if box_space else None
        try:
            gold = scorer.rewards[scorer.route(sample)].gold_answer(sample, space)
        except BadGoldError as error:
            problems.append(str(error))
            continue
        responses.append(Response(sample=sample, text=scorer.wrapped(gold), boxes=space))
    results, broken = score_all(scorer, responses)
    problems += broken
    for response, scored in zip(responses, results, strict=True):
        if scored is not None and (scored.accuracy is None or scored.accuracy < NEARLY_ONE):
            problems.append(_line(response.sample, scored))
    return problems


def drawn(samples: Sequence[Sample], per_task: int) -> list[Sample]:
    """At most ``per_task`` samples of each task, spread evenly over their order; all of them for 0."""
    if not per_task:
        return list(samples)
    by_task: dict[str, list[Sample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, []).append(sample)
    chosen = []
    for group in by_task.values():
        count = min(per_task, len(group))
        chosen += [group[index * len(group) // count] for index in range(count)]
    return chosen


def _line(sample: Sample, scored: Scored) -> str:
    place = f"{sample.origin}: " if sample.origin else ""
    reason = "was not judged" if scored.accuracy is None else f"its own gold scores {scored.accuracy:.4g}"
    note = f" ({scored.note})" if scored.note else ""
    return (
        f"{place}record {sample.uid!r} ({sample.task}): {reason} with reward {scored.reward!r}{note}; gold {sample.answer[:80]!r}"
    )
