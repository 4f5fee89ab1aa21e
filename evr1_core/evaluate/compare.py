"""Two runs against each other: difference, paired test, questions that flipped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from evr1_core.api import DataError
from evr1_core.evaluate.progress import first
from evr1_core.evaluate.rows import read_rows

DRAWS = 10_000


@frozen(kw_only=True)
class Difference:
    """Run B against run A on the questions that both have. ``a``, ``b``: mean of the first score, in percent; ``p``: of a two-sided
    paired test that flips signs at random; ``better``, ``worse``: uids whose score went up, down. ``same_protocol``: settings but
    the model agree. ``alone``: questions that one of them has alone.
    """

    benchmark: str
    questions: int
    alone: int
    a: float
    b: float
    p: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    same_protocol: bool


def compared(a: Path, b: Path) -> list[Difference]:
    """The differences on every benchmark that both runs have. Raises DataError without results, or anything in common."""
    first_run, second_run = _results(a), _results(b)
    names = [name for name in first_run if name in second_run]
    if not names:
        raise DataError([f"{a} and {b} have no benchmark in common"])
    return [_difference(name, a, first_run[name], b, second_run[name]) for name in names]


def _results(folder: Path) -> dict[str, Any]:
    path = folder / "results.json"
    try:
        return {summary["benchmark"]: summary for summary in json.loads(path.read_text("utf-8"))["benchmarks"]}
    except FileNotFoundError as error:
        raise DataError([f"{folder}: holds no results.json; name the --output of a finished evaluation"]) from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError([f"{path}: is not what `evr1 eval` writes"]) from error


def _difference(name: str, a: Path, mine: Mapping[str, Any], b: Path, theirs: Mapping[str, Any]) -> Difference:
    left, right = _scores(a / name, mine), _scores(b / name, theirs)
    both = sorted(left.keys() & right.keys())
    if not both:
        raise DataError([f"{name}: {a} and {b} have no question in common"])
    before, after = (np.array([scores[uid] for uid in both]) for scores in (left, right))
    protocols = [
        {k: v for k, v in each["protocol"].items() if k not in ("settings", "model", "versions")} for each in (mine, theirs)
    ]
    return Difference(
        benchmark=name,
        questions=len(both),
        alone=len(left.keys() ^ right.keys()),
        a=100 * float(before.mean()),
        b=100 * float(after.mean()),
        p=paired(after - before),
        better=tuple(uid for uid, x, y in zip(both, before, after, strict=True) if y > x),
        worse=tuple(uid for uid, x, y in zip(both, before, after, strict=True) if y < x),
        same_protocol=protocols[0] == protocols[1],
    )


def _scores(folder: Path, summary: Mapping[str, Any]) -> dict[str, float]:
    settings = summary["protocol"]["settings"]
    path = folder / "rows.jsonl"
    if not path.is_file():
        raise DataError([f"{path}: is missing; comparing needs the rows"])
    return {row["uid"]: first(row) for row in read_rows(path) if row["settings"] == settings}


def paired(differences: Any, seed: int = 0) -> float:
    """The p-value of differences with mean 0: the share of random sign flips whose sum is at least as far from 0."""
    changed = np.asarray(differences, dtype=float)
    changed = changed[changed != 0]
    if not len(changed):
        return 1.0
    generator = np.random.default_rng(seed)
    observed, count, left = abs(changed.sum()), 1, DRAWS
    while left:
        size = min(left, max(1, 10_000_000 // len(changed)))
        sums = (generator.choice([-1.0, 1.0], (size, len(changed))) * changed).sum(axis=1)
        count += int((abs(sums) >= observed - 1e-9).sum())
        left -= size
    return count / (DRAWS + 1)


def lines(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    """The table, its head first."""
    head = ("benchmark", "questions", "A", "B", "B - A", "p", "better", "worse")
    return [
        head,
        *(
            (
                each.benchmark,
                str(each.questions),
                f"{each.a:.2f}",
                f"{each.b:.2f}",
                f"{each.b - each.a:+.2f}",
                f"{each.p:.4f}",
                str(len(each.better)),
                str(len(each.worse)),
            )
            for each in differences
        ),
    ]


def remarks(differences: Sequence[Difference], flips: int) -> list[str]:
    """What else is to be known, and the first few flipped questions."""
    found = []
    for each in differences:
        if not each.same_protocol:
            found.append(f"{each.benchmark}: the protocols differ in more than the model; see results.json")
        if each.alone:
            found.append(f"{each.benchmark}: {each.alone} questions are in one run alone and left out")
        for name, uids in (("better", each.better), ("worse", each.worse)):
            if uids and flips:
                found.append(f"{each.benchmark}, {name}: {', '.join(uids[:flips])}{', ...' if len(uids) > flips else ''}")
    return found
