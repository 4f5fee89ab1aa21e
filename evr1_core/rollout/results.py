"""What the rewards say about stored responses: results, a table of them, and how they differ from what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from evr1_core.api.errors import DataError
from evr1_core.rollout.form import in_form
from evr1_core.rollout.rows import EXTRACT, FORMAT, Row
from evr1_core.rollout.scoring import Scored, Scorer, score_all


@frozen(kw_only=True)
class Result:
    """What became of a row; ``value`` is what `expected` is compared with."""

    row: Row
    value: float | str | None
    answer: str | None
    scored: Scored | None = None
    parsed: bool
    format: float

    @property
    def accuracy(self) -> float | None:
        """None for a row that was not judged, or that only checks extraction or format."""
        return self.scored.accuracy if self.scored else None


def score_rows(rows: Sequence[Row], scorer: Scorer) -> list[Result]:
    """One result a row, in order. Raises DataError that lists every row without a reward or with a broken gold."""
    rows = [_routed(row, scorer) for row in rows]
    graded = [row for row in rows if row.kind not in (EXTRACT, FORMAT)]
    unserved = [problem for row in graded if (problem := scorer.unserved(row.response.sample))]
    if unserved:
        raise DataError(unserved)
    scored, problems = score_all(scorer, [row.response for row in graded])
    if problems:
        raise DataError(problems)
    verdicts = iter(scored)
    return [_checked(row, scorer) if row.kind in (EXTRACT, FORMAT) else _graded(row, scorer, next(verdicts)) for row in rows]


def _routed(row: Row, scorer: Scorer) -> Row:
    """The row under its problem type with subtype, where a reward serves that."""
    if row.subtask not in scorer.tasks:
        return row
    return evolve(row, response=evolve(row.response, sample=evolve(row.response.sample, task=row.subtask)))


def _graded(row: Row, scorer: Scorer, scored: Scored | None) -> Result:
    assert scored is not None  # a row without a result is a problem, raised before
    answer = scorer.answer(row.response.text)
    return Result(
        row=row, value=scored.accuracy, answer=answer, scored=scored, parsed=scored.parsed, format=scored.components["format"]
    )


def _checked(row: Row, scorer: Scorer) -> Result:
    """A row that only checks the extractor or the format."""
    text = row.response.text
    answer = scorer.answer(text)
    form = float(in_form(text, scorer.config.format, opens_thinking=scorer.opens_thinking))
    return Result(row=row, value=answer if row.kind == EXTRACT else form, answer=answer, parsed=bool(answer), format=form)


def table(results: Sequence[Result]) -> list[str]:
    """The lines of the table by problem type: rows, mean accuracy, mean format, parsed rate, rows that were not judged."""
    by_type: dict[str, list[Result]] = {}
    for result in results:
        by_type.setdefault(result.row.kind, []).append(result)
    head = ("type", "rows", "accuracy", "format", "parsed", "not judged")
    return aligned([head, *(_line(kind, group) for kind, group in sorted(by_type.items()))])


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


def _line(kind: str, group: Sequence[Result]) -> tuple[str, ...]:
    judged = [result.accuracy for result in group if result.accuracy is not None]
    accuracy = f"{sum(judged) / len(judged):.4f}" if judged else "-"
    unjudged = sum(result.scored is not None and not result.scored.judged for result in group)
    form, parsed = (sum(values) / len(group) for values in ([r.format for r in group], [float(r.parsed) for r in group]))
    return kind, str(len(group)), accuracy, f"{form:.4f}", f"{parsed:.4f}", str(unjudged)


def as_json(result: Result) -> dict[str, Any]:
    """A row of the file that `--out` writes."""
    sample, scored = result.row.response.sample, result.scored
    row: dict[str, Any] = {"uid": sample.uid, "origin": sample.origin, "problem_type": sample.task, "answer": result.answer}
    row |= {"parsed": result.parsed, "format": result.format}
    if scored is None:
        row["note"] = "no answer" if result.answer is None else "answer found"
    else:
        row |= {"reward": scored.reward, "total": scored.total if scored.judged else None, **scored.components}
        row |= {"accuracy": scored.accuracy, "judged": scored.judged, "note": scored.note}
    if result.row.expects:
        row["expected"] = result.row.expected
    return row


def differences(results: Sequence[Result]) -> list[str]:
    """A line for every row that is not as it expects to be."""
    return [_difference(result) for result in results if result.row.expects and not _as_expected(result)]


def _difference(result: Result) -> str:
    sample, note = result.row.response.sample, f"; {result.scored.note}" if result.scored and result.scored.note else ""
    return f"{sample.origin}: {sample.uid} ({sample.task}): expected {result.row.expected!r}, is {result.value!r}{note}"


def _as_expected(result: Result) -> bool:
    value, expected = result.value, result.row.expected
    if isinstance(value, float) and isinstance(expected, int | float):
        return abs(value - expected) <= result.row.tolerance
    return value == expected
