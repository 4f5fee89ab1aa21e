"""A pass over validation records: accuracy by task and by source, and one row for every response."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from evr1_core.api import RolloutEngine, Sample, Sampling
from evr1_core.api.filters import pass_at_k
from evr1_core.config.schema import RunConfig
from evr1_core.rollout.collect import sample_groups, score_groups
from evr1_core.rollout.groups import Group, Response
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scored, Scorer

RIGHT = 0.5  # accuracy from which a response counts as right in pass@k
BATCH = 64  # prompts encoded at a time: all of a large validation set at once would hold all of its patches


@frozen(kw_only=True)
class Validation:
    """``metrics`` under ``val/``; ``rows``: uid, task, source, response, gold, scores."""

    metrics: dict[str, float]
    rows: list[dict[str, Any]]


async def validate(
    engine: RolloutEngine, encoder: PromptEncoder, scorer: Scorer, samples: Sequence[Sample], sampling: Sampling
) -> Validation:
    """Responses to each sample, scored as in training. A response without a readable answer counts as wrong."""
    rows: list[dict[str, Any]] = []
    for first in range(0, len(samples), BATCH):
        groups = await sample_groups(engine, encoder.encode(samples[first : first + BATCH]), sampling, "validation")
        scores = score_groups(scorer, groups)
        rows += [
            _row(group, response, score)
            for group, own in zip(groups, scores, strict=True)
            for response, score in zip(group.responses, own, strict=True)
        ]
    return Validation(metrics=summary(rows, sampling.n), rows=rows)


def val_sampling(config: RunConfig) -> Sampling:
    """One greedy response to a record, or several as in training."""
    rollout, n = config.rollout, config.val.n
    return Sampling(n=n, temperature=0.0 if n == 1 else rollout.temperature, max_tokens=rollout.max_response_tokens)


def _row(group: Group, response: Response, score: Scored) -> dict[str, Any]:
    sample = group.prompt.sample
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


def summary(rows: Sequence[dict[str, Any]], n: int = 1) -> dict[str, float]:
    """Means over all rows, ``n`` for each record, by task, and by source where there are several. What was not judged leaves the
    accuracy, counted."""
    metrics = _means("val", rows, n)
    for key in ("task", "source"):
        parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            parts[row[key]].append(row)
        if key == "task" or len(parts) > 1:
            for name, part in sorted(parts.items()):
                metrics |= _means(f"val/{_slug(name)}", part, n)
    return metrics


def _means(prefix: str, rows: Sequence[dict[str, Any]], n: int) -> dict[str, float]:
    judged = [row["accuracy"] for row in rows if row["accuracy"] is not None]
    metrics = {f"{prefix}/parsed": sum(row["parsed"] for row in rows) / len(rows), f"{prefix}/samples": len(rows) / n}
    if judged:
        metrics[f"{prefix}/accuracy"] = sum(judged) / len(judged)
    if len(judged) < len(rows):
        metrics[f"{prefix}/not_judged"] = float(len(rows) - len(judged))
    if n > 1:
        records = [rows[first : first + n] for first in range(0, len(rows), n)]
        right = [sum((row["accuracy"] or 0.0) >= RIGHT for row in record) for record in records]
        for k in (2**power for power in range(n.bit_length()) if 2**power <= n):
            metrics[f"{prefix}/pass@{k}"] = sum(pass_at_k(n, count, k) for count in right) / len(records)
    return metrics


def _slug(name: str) -> str:
    return "_".join(name.split()) or "unnamed"
