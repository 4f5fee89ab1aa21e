"""Bootstrap confidence intervals of a benchmark's headline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evr1_core.api import ScoredRow

DRAWS = 1000
FEW = 200  # draws where every one costs a whole aggregation
LEVEL = 95.0  # percent

Aggregate = Callable[[Sequence[ScoredRow]], Mapping[str, float]]


def interval(rows: Sequence[ScoredRow], aggregate: Aggregate, metric: str, *, seed: int = 0) -> tuple[float, float] | None:
    """The 95 % percentile interval of ``metric`` in percent; None with fewer than two videos.

    Questions about one video are no independent draws: whole videos are drawn, with replacement.
    """
    videos: dict[str, list[ScoredRow]] = defaultdict(list)
    for row in rows:
        videos[row.item.cluster[0] if row.item.cluster else row.item.video].append(row)
    if len(videos) < 2:
        return None
    members, generator = list(videos.values()), np.random.default_rng(seed)
    if all(metric in row.scores for row in rows) and _is_mean(rows, aggregate, metric):
        sums = np.array([sum(row.scores[metric] for row in own) for own in members])
        sizes = np.array([len(own) for own in members])
        drawn = generator.integers(0, len(members), (DRAWS, len(members)))
        found = 100 * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    else:
        picks = (generator.integers(0, len(members), len(members)) for _ in range(FEW))
        samples = (aggregate([row for place in pick for row in members[place]]) for pick in picks)
        found = np.array([sample[metric] for sample in samples if metric in sample])
    low, high = np.percentile(found, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


def _is_mean(rows: Sequence[ScoredRow], aggregate: Aggregate, metric: str) -> bool:
    mean = 100 * sum(row.scores[metric] for row in rows) / len(rows)
    return abs(aggregate(rows).get(metric, float("nan")) - mean) < 1e-9
