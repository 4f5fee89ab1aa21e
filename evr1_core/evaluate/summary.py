"""What a benchmark came to, with the protocol beside the number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import asdict

from evr1_core.api import ScoredRow
from evr1_core.config.choices import Choice
from evr1_core.config.manifest import package_versions, plugin_record
from evr1_core.config.sources import resolved
from evr1_core.evaluate.intervals import interval
from evr1_core.evaluate.work import Work

REASONS = 3  # of failures and skipped records, shown


def summarised(work: Work, model: Mapping[str, str]) -> dict[str, Any]:
    """Scores in percent, counts and protocol of one benchmark. Questions without a row are counted as ``missing`` and stay out."""
    lenient, strict = scored_rows(work, "scores"), scored_rows(work, "strict_scores")
    headline = work.benchmark.metrics[0]
    scores = dict(work.benchmark.aggregate(lenient)) if lenient else {}
    return {
        "benchmark": work.id,
        "title": work.benchmark.title,
        "metric": headline,
        "score": scores.get(headline),
        "strict_score": work.benchmark.aggregate(strict).get(headline) if strict else None,
        "interval": interval(lenient, work.benchmark.aggregate, headline) if lenient else None,
        "scores": scores,
        "counts": counts(work),
        "failures": failures(work),
        "skipped": dict(Counter(skipped.reason for skipped in work.annotations.skipped).most_common()),
        "protocol": protocol(work, model),
    }


def scored_rows(work: Work, which: str) -> list[ScoredRow]:
    """The items of this run that have a row, in order, with the scores under ``which``."""
    found = ((item, work.rows.get(item.uid)) for item in work.items)
    return [ScoredRow(item=item, answer=row["answer"], scores=row[which]) for item, row in found if row is not None]


def counts(work: Work) -> dict[str, int]:
    """Of questions: in all, published, failed by kind, without an answer, cut off, not or not clearly judged, not asked yet."""
    rows = [row for item in work.items if (row := work.rows.get(item.uid)) is not None]
    answered = [row for row in rows if row["status"] == "answered"]
    kinds = Counter(row["status"] for row in rows)
    return {
        "n_total": len(work.items),
        "n_published": work.benchmark.size,
        "n_missing": len(work.items) - len(rows),
        "n_failed": len(rows) - len(answered),
        **{f"n_failed_{kind}": number for kind, number in sorted(kinds.items()) if kind != "answered"},
        "n_unparsed": sum(row["answer"] is None for row in answered),
        "n_truncated": sum(row["truncated"] for row in answered),
        "n_unjudged": sum(row["judge"] == "pending" for row in answered),
        "n_judge_failed": sum(row["judge"] == "failed" for row in answered),
        "n_judged": sum(row["judge"] == "judged" for row in answered),
        "n_skipped": len(work.annotations.skipped),
    }


def failures(work: Work) -> list[str]:
    """The first few reasons of failed questions, each with its uid."""
    broken = [row for item in work.items if (row := work.rows.get(item.uid)) is not None and row["status"] != "answered"]
    return [f"{row['uid']}: {row['error']}" for row in broken[:REASONS]]


def protocol(work: Work, model: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the number depends on. Of responses made elsewhere it is not known how they were asked for."""
    config = work.config
    asked = {
        "preset": config.protocol,
        "frames": resolved(config.frames),
        "prompt": {**resolved(config.prompt), "sha256": work.prompts},
        "decoding": resolved(config.decoding),
        "max_prompt_tokens": config.max_prompt_tokens,
        "engine": resolved(config.engine),
    }
    return {
        "settings": work.settings,
        **(dict.fromkeys(asked) if "responses" in model else asked),
        "options": asdict(work.benchmark),
        "annotations": {"files": [str(file) for file in work.annotations.files], "sha256": work.annotations.sha256},
        "limit": config.limit,
        "model": dict(model),
        "judge": {"base_url": config.judge.base_url, "model": config.judge.model},
        "plugins": [_plugin("benchmarks", work.name), *([_plugin("engines", config.engine.name)] if "engine" in model else [])],
        "versions": package_versions(),
    }


def _plugin(group: str, name: str) -> dict[str, str]:
    return plugin_record(Choice(path=(), group=group, name=name, options={}))
