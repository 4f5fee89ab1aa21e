"""Results as files and as a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evr1_core.data.whole import replacing

Summary = Mapping[str, Any]
COLUMNS = ("benchmark", "metric", "score", "95 % interval", "strict", "n", "failed", "unparsed", "cut off", "unjudged", "not asked")


def write_reports(folder: Path, summaries: Sequence[Summary]) -> None:
    """``results.json``, ``report.md`` and ``report.csv`` in the results' folder, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    results = json.dumps({"benchmarks": list(summaries)}, indent=2, ensure_ascii=False, default=str) + "\n"
    for name, text in (("results.json", results), ("report.md", markdown(summaries)), ("report.csv", as_csv(summaries))):
        with replacing(folder / name) as path:
            path.write_text(text, encoding="utf-8")


def lines(summaries: Sequence[Summary]) -> list[tuple[str, ...]]:
    """The rows of the table, its head first."""
    return [COLUMNS, *map(_line, summaries)]


def _line(summary: Summary) -> tuple[str, ...]:
    counts = summary["counts"]
    names = ("n_total", "n_failed", "n_unparsed", "n_truncated")
    unjudged = counts["n_unjudged"] + counts["n_judge_failed"]
    return (
        summary["benchmark"],
        summary["metric"],
        shown(summary["score"]),
        "-" if summary["interval"] is None else " - ".join(map(shown, summary["interval"])),
        shown(summary["strict_score"]),
        *(str(counts[name]) for name in names),
        str(unjudged),
        str(counts["n_missing"]),
    )


def shown(value: float | None) -> str:
    """A percentage."""
    return "-" if value is None else f"{value:.2f}"


def remarks(summaries: Sequence[Summary]) -> list[str]:
    """What a reader of the numbers must know: fewer records than published, failures, what was left out or not judged."""
    found = []
    for summary in summaries:
        counts, name = summary["counts"], summary["benchmark"]
        if summary["protocol"]["limit"]:
            found.append(f"{name}: the first {counts['n_total']} questions only (limit)")
        elif counts["n_total"] != counts["n_published"]:
            found.append(f"{name}: {counts['n_total']} questions, {counts['n_published']} are published")
        found += [f"{name}: {number} records left out: {reason}" for reason, number in summary["skipped"].items()]
        if counts["n_failed"]:
            found.append(f"{name}: {counts['n_failed']} questions failed and count as wrong, such as {summary['failures'][0]}")
        if counts["n_unjudged"]:
            found.append(f"{name}: {counts['n_unjudged']} answers wait for a judge and count as wrong; run with --judge-only")
        if counts["n_missing"]:
            found.append(
                f"{name}: {counts['n_missing']} questions have not been asked and are not in the score; run again to go on"
            )
    return found


def markdown(summaries: Sequence[Summary]) -> str:
    """The table, the remarks, every group, and the protocol of each benchmark."""
    head, *rows = lines(summaries)
    parts = ["# Results", "", _row(head), _row("---" for _ in head), *map(_row, rows), ""]
    parts += [f"- {remark}" for remark in remarks(summaries)]
    for summary in summaries:
        parts += ["", f"## {summary['title']}", "", _row(("score", "percent")), _row(("---", "---"))]
        parts += [_row((name, shown(value))) for name, value in summary["scores"].items()]
        parts += ["", "```json", json.dumps(summary["protocol"], indent=2, ensure_ascii=False, default=str), "```"]
    return "\n".join(parts) + "\n"


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def as_csv(summaries: Sequence[Summary]) -> str:
    """One line for every score: benchmark, score, percent, whether it is the headline, questions."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("benchmark", "score", "percent", "headline", "n_total", "n_failed", "settings"))
    for summary in summaries:
        for name, value in summary["scores"].items():
            counts = summary["counts"]
            head = int(name == summary["metric"])
            writer.writerow(
                (summary["benchmark"], name, value, head, counts["n_total"], counts["n_failed"], summary["protocol"]["settings"])
            )
    return text.getvalue()
