"""A greedy pass over validation records: accuracy by task and by source, and one row for every response."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from evr1_core.api import RolloutEngine, Sample, Sampling
from evr1_core.rollout.collect import sample_groups, score_groups
from evr1_core.rollout.groups import Group
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scored, Scorer

BATCH = 64  # prompts encoded at a time: all of a large validation set at once would hold all of its patches


@frozen(kw_only=True)
class Validation:
    """``metrics`` under ``val/``; ``rows``: uid, task, source, response, gold, scores."""

    metrics: dict[str, float]
    rows: list[dict[str, Any]]


async def validate(
    engine: RolloutEngine, encoder: PromptEncoder, scorer: Scorer, samples: Sequence[Sample], max_tokens: int
) -> Validation:
    """One greedy response to each sample, scored as in training. A response without a readable answer counts as wrong."""
    sampling = Sampling(n=1, temperature=0.0, max_tokens=max_tokens)
    rows: list[dict[str, Any]] = []
    for first in range(0, len(samples), BATCH):
        groups = await sample_groups(engine, encoder.encode(samples[first : first + BATCH]), sampling, "validation")
        scores = score_groups(scorer, groups)
        rows += [_row(group, score[0]) for group, score in zip(groups, scores, strict=True)]
    return Validation(metrics=summary(rows), rows=rows)


def _row(group: Group, score: Scored) -> dict[str, Any]:
    sample, response = group.prompt.sample, group.responses[0]
    return {
        "uid": sample.uid,
        "task": sample.task,
        "source": sample.source,
        "response": response.text,
        "answer": sample.answer,
        "tokens": len(response.token_ids),
        "truncated": response.truncated,
        "accuracy": score.accuracy,
        "parsed": score.parsed,
        "components": dict(score.components),
        "note": score.note,
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Means over all rows, by task, and by source where there are several. What was not judged leaves the accuracy, counted."""
    metrics = _means("val", rows)
    for key in ("task", "source"):
        parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            parts[row[key]].append(row)
        if key == "task" or len(parts) > 1:
            for name, part in sorted(parts.items()):
                metrics |= _means(f"val/{_slug(name)}", part)
    return metrics


def _means(prefix: str, rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    judged = [row["accuracy"] for row in rows if row["accuracy"] is not None]
    metrics = {f"{prefix}/parsed": sum(row["parsed"] for row in rows) / len(rows), f"{prefix}/samples": float(len(rows))}
    if judged:
        metrics[f"{prefix}/accuracy"] = sum(judged) / len(judged)
    if len(judged) < len(rows):
        metrics[f"{prefix}/not_judged"] = float(len(rows) - len(judged))
    return metrics


def _slug(name: str) -> str:
    return "_".join(name.split()) or "unnamed"
