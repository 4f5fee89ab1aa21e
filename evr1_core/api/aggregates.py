"""Means over scored rows, in percent. A row counts whether or not it had a response."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evr1_core.api.items import ScoredRow


def percent(values: Iterable[float]) -> float:
    """The mean of ``values`` times 100. Raises ValueError for none: there is no mean of nothing."""
    found = list(values)
    if not found:
        raise ValueError("no values to take the mean of")
    return 100.0 * math.fsum(found) / len(found)


def means(rows: Iterable[ScoredRow], prefix: str = "") -> dict[str, float]:
    """The mean of every score over the rows that have it, under ``prefix`` and its name, in order of appearance."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.scores.items():
            values[name].append(value)
    return {prefix + name: percent(found) for name, found in values.items()}


def by_value(rows: Iterable[ScoredRow], axis: str) -> dict[str, list[ScoredRow]]:
    """The rows of each value on an axis, sorted by value; a row with several values is in each."""
    found: dict[str, list[ScoredRow]] = defaultdict(list)
    for row in rows:
        for value in row.item.groups.get(axis, ()):
            found[value].append(row)
    return dict(sorted(found.items()))


def grouped(rows: Sequence[ScoredRow], axes: Iterable[str] | None = None) -> dict[str, float]:
    """The means of every group: ``duration=short/accuracy``. ``axes`` None: all that the items have, in order of appearance."""
    if axes is None:
        axes = dict.fromkeys(axis for row in rows for axis in row.item.groups)
    return {
        name: value
        for axis in axes
        for group, members in by_value(rows, axis).items()
        for name, value in means(members, f"{axis}={group}/").items()
    }


def macro(rows: Sequence[ScoredRow], axis: str, metric: str = "accuracy") -> float | None:
    """The unweighted mean, over the values of an axis, of the mean of ``metric``, in percent; None when no row has it."""
    found = [means(members).get(metric) for members in by_value(rows, axis).values()]
    known = [value for value in found if value is not None]
    return math.fsum(known) / len(known) if known else None


def clusters(rows: Iterable[ScoredRow]) -> Mapping[str, list[ScoredRow]]:
    """The rows of each cluster, in the order of their positions; rows without a cluster are left out."""
    found: dict[str, list[ScoredRow]] = defaultdict(list)
    for row in rows:
        if row.item.cluster is not None:
            found[row.item.cluster[0]].append(row)
    return {key: sorted(members, key=lambda row: row.item.cluster[1]) for key, members in found.items()}  # type: ignore[index]
