"""Stored responses, one JSON object a line, as `evr1 score` reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evr1_core.api.errors import DataError
from evr1_core.api.samples import Sample
from evr1_core.data.tasks import canonical
from evr1_core.rollout.scoring import Response

EXTRACT, FORMAT = "extract", "format"  # kinds that check the extractor and the format reward, and need no gold
ALIASES = {"gold": ("ground_truth", "answer"), "task": ("problem_type", "kind"), "uid": ("uid", "id", "problem_id")}
KNOWN = {"response", "options", "subtype", "expected", "num_tokens", "truncated", "problem", "extra", *sum(ALIASES.values(), ())}
EXPECTING = {"tolerance", "why", "source"}  # belong to the expectation, not to the record, where a row expects something


@frozen(kw_only=True)
class Row:
    """A row of the file. ``subtask``: the problem type with its subtype before it, to be used where a reward serves it.
    ``expected`` is a number, or for the kind ``extract`` a text or None; ``expects`` says whether the row has one.
    """

    response: Response
    subtask: str = ""
    expects: bool = False
    expected: float | str | None = None
    tolerance: float = 1e-9

    @property
    def kind(self) -> str:
        """The problem type, or ``extract`` or ``format``."""
        return self.response.sample.task


def read_rows(path: Path) -> list[Row]:
    """All rows of a JSONL file. Raises DataError that lists, with file and line, every row that cannot be used."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError([f"{path}: cannot be read: {error.strerror}"]) from error
    rows: list[Row] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = list(_row(line, f"{path}:{number}", f"{path.stem}/{number}"))
        problems += [f"{path}:{number}: {one}" for one in found if isinstance(one, str)]
        rows += [one for one in found if isinstance(one, Row)]
    if problems:
        raise DataError(problems)
    if not rows:
        raise DataError(
            [f"{path}: holds no rows; one JSON object a line is wanted, with `response`, `ground_truth`, `problem_type`"]
        )
    return rows


def _row(line: bytes, origin: str, uid: str) -> Iterator[str | Row]:
    """The row, or what is wrong with it."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:  # a decoding error is a ValueError
        yield f"is not JSON: {error}"
        return
    if not isinstance(raw, dict):
        yield "is not a JSON object"
        return
    problems = list(_problems(raw))
    yield from problems
    if not problems:
        yield _made(raw, origin, uid)


def _problems(raw: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(raw.get("response"), str):
        yield "`response` is missing or no text"
    task = _first(raw, "task")
    if not isinstance(task, str) or not task.strip():
        yield "`problem_type` (or `kind`) is missing or no text"
        return
    kind = canonical(task)
    if kind not in (EXTRACT, FORMAT) and _first(raw, "gold") is None:
        yield "`ground_truth` (or `answer`) is missing"
    options = raw.get("options") or []
    if not isinstance(options, list) or not all(_is_number(option) or isinstance(option, str) for option in options):
        yield "`options` is no list of texts or numbers"
    if not isinstance(raw.get("subtype", ""), str):
        yield "`subtype` is no text"
    if not isinstance(raw.get("extra", {}), dict):
        yield "`extra` is no object"
    if type(raw.get("num_tokens", 0)) is not int or raw.get("num_tokens", 0) < 0:
        yield "`num_tokens` is no whole number of 0 or more"
    if not isinstance(raw.get("truncated", False), bool):
        yield "`truncated` is neither true nor false"
    if "expected" in raw:
        yield from _expectation_problems(kind, raw)


def _expectation_problems(kind: str, raw: Mapping[str, Any]) -> Iterator[str]:
    if kind == EXTRACT:
        if not isinstance(raw["expected"], str | None):
            yield "`expected` is neither a text nor null"
    elif not _is_number(raw["expected"]):
        yield "`expected` is no number"
    if not _is_number(raw.get("tolerance", 0.0)):
        yield "`tolerance` is no number"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _first(raw: Mapping[str, Any], what: str) -> Any:
    return next((raw[key] for key in ALIASES[what] if raw.get(key) is not None), None)


def _made(raw: Mapping[str, Any], origin: str, uid: str) -> Row:
    gold, task, subtype = _first(raw, "gold"), canonical(_first(raw, "task")), raw.get("subtype", "")
    expects = "expected" in raw
    own = {key: value for key, value in raw.items() if key not in KNOWN and not (expects and key in EXPECTING)}
    given = _first(raw, "uid")
    sample = Sample(
        uid=uid if given is None else str(given),
        task=task,
        problem=str(raw.get("problem", "")),
        answer=gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False),
        options=tuple(str(option) for option in raw.get("options") or ()),
        origin=origin,
        extra={**own, **raw.get("extra", {}), **({"subtype": subtype} if subtype else {})},
    )
    response = Response(
        sample=sample, text=raw["response"], num_tokens=raw.get("num_tokens", 0), truncated=raw.get("truncated", False)
    )
    return Row(
        response=response,
        subtask=canonical(f"{subtype} {task}") if subtype else "",
        expects=expects,
        expected=raw.get("expected"),
        tolerance=max(1e-9, float(raw.get("tolerance", 0.0))) if expects else 0.0,
    )
