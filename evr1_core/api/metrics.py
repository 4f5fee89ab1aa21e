"""Measures shared by rewards and benchmarks. All are finite and in [0, 1] for finite input."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

Span = tuple[float, float]
Box = tuple[float, float, float, float]
SLACK = 1e-9  # in twentieths: (8, 10) is an error of exactly 0.2


def iou_1d(a: Span, b: Span) -> float:
    """Intersection over union of two spans (start <= end); equal ones give 1, another one without length 0."""
    if a == b:
        return 1.0
    shared = min(a[1], b[1]) - max(a[0], b[0])
    covered = max(a[1], b[1]) - min(a[0], b[0])
    return _ratio(shared, covered)


def iou_1d_union(guess: Sequence[Span], gold: Sequence[Span]) -> float:
    """Intersection over union of two sets of spans, each taken as the union of its spans."""
    left, right = _merged(guess), _merged(gold)
    if left == right and left:
        return 1.0
    shared = _overlap(left, right)
    covered = sum(end - start for start, end in left) + sum(end - start for start, end in right) - shared
    return _ratio(shared, covered)


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _overlap(left: Sequence[Span], right: Sequence[Span]) -> float:
    """Shared length of two sorted lists of disjoint spans, in one pass."""
    total, i, j = 0.0, 0, 0
    while i < len(left) and j < len(right):
        total += max(0.0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total


def iou_2d(a: Box, b: Box) -> float:
    """Intersection over union of two boxes (x1, y1, x2, y2) with corners in order; a box without area gives 0."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return _ratio(shared, _area(a) + _area(b) - shared)


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _ratio(part: float, whole: float) -> float:
    """``part / whole`` in [0, 1]; 0 where it has no finite value (overflow, nothing covered)."""
    ratio = part / whole if whole > 0 and math.isfinite(whole) else 0.0
    return min(1.0, max(0.0, ratio))


def viou(guess: Mapping[float, Box | None], gold: Mapping[float, Box | None]) -> float:
    """Box overlap over time (arXiv:2001.06891): sum of the IoU over the frames that both name, divided by the number of frames that
    either names. A box of None is a frame that was named without a usable box: 0. Without frames: 0.

    Dividing by the shared frames alone would give 1 to a single perfect frame.
    """
    frames = guess.keys() | gold.keys()
    if not frames:
        return 0.0
    shared = ((guess[frame], gold[frame]) for frame in guess.keys() & gold.keys())
    return math.fsum(iou_2d(a, b) for a, b in shared if a is not None and b is not None) / len(frames)


def mean_relative_accuracy(guess: float, gold: float) -> float:
    """Share of the thresholds .50, .55, ..., .95 with ``|guess - gold| / |gold| <= 1 - threshold`` (VSI-Bench, arXiv:2412.14171).

    Compared in whole twentieths with a slack of 1e-9. A gold of 0: 1 for an exact match, else 0.
    """
    if gold == 0:
        return float(guess == 0)
    twentieths = 20 * (abs(guess - gold) / abs(gold))
    return sum(twentieths <= k + SLACK for k in range(1, 11)) / 10


def relative_accuracy(guess: float, gold: float) -> float:
    """``1 - |guess - gold| / |gold|``, at least 0. A gold of 0: 1 for an exact match, else 0."""
    if gold == 0:
        return float(guess == 0)
    return max(0.0, 1.0 - abs(guess - gold) / abs(gold))


def word_error_rate(guess: Sequence[Hashable], gold: Sequence[Hashable]) -> float:
    """Insertions, deletions and substitutions that turn ``guess`` into ``gold``, over the length of ``gold``; at most 1.

    Words are compared as they are. A gold without words: 0 for an equal guess, else 1.
    """
    from rapidfuzz.distance import Levenshtein

    if not gold:
        return float(len(guess) > 0)
    return min(1.0, Levenshtein.distance(guess, gold, score_cutoff=len(gold)) / len(gold))
