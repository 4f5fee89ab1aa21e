"""Intervals and the paired test against exact values and slow versions."""

from __future__ import annotations

import itertools
import random

import pytest

from evr1_core.api import EvalItem, ScoredRow
from evr1_core.api.aggregates import macro, means
from evr1_core.evaluate.compare import paired
from evr1_core.evaluate.intervals import interval


def scored(values, per_video=1):
    return [
        ScoredRow(
            item=EvalItem(
                uid=f"b/{n}", bench="b", task="open", question="?", video=f"{n // per_video}.mp4", groups={"kind": (str(n % 2),)}
            ),
            answer="",
            scores={"accuracy": value},
        )
        for n, value in enumerate(values)
    ]


def slow(rows, per_video, draws=4000):
    """Percentiles of means over drawn videos, one draw after the other."""
    generator = random.Random(1)
    videos = [rows[first : first + per_video] for first in range(0, len(rows), per_video)]
    found = []
    for _ in range(draws):
        drawn = [row.scores["accuracy"] for video in generator.choices(videos, k=len(videos)) for row in video]
        found.append(100 * sum(drawn) / len(drawn))
    found.sort()
    return found[int(0.025 * draws)], found[int(0.975 * draws)]


@pytest.mark.parametrize("per_video", [1, 4])
def test_intervals_are_those_of_drawing_videos(per_video):
    rows = scored([float(n % 8 < 3) for n in range(200)], per_video)
    found = interval(rows, means, "accuracy")
    assert found == pytest.approx(slow(rows, per_video), abs=1.5)
    assert found == interval(rows, means, "accuracy")


def test_a_headline_that_is_no_mean_is_drawn_too():
    rows = scored([float(n % 3 == 0) for n in range(60)])
    low, high = interval(rows, lambda some: {"macro": macro(some, "kind")}, "macro")
    assert low < macro(rows, "kind") < high


def test_no_interval_of_one_video():
    assert interval(scored([1.0, 0.0], per_video=2), means, "accuracy") is None


def test_the_paired_test_is_that_of_all_sign_flips():
    differences = [1, 1, 1, -1, 0, 1, 0.5, -0.25]
    changed = [each for each in differences if each]
    flips = [sum(s * d for s, d in zip(signs, changed, strict=True)) for signs in itertools.product((-1, 1), repeat=len(changed))]
    exact = sum(abs(flip) >= abs(sum(changed)) - 1e-9 for flip in flips) / len(flips)
    assert paired(differences) == pytest.approx(exact, abs=0.02)
    assert paired([0, 0]) == 1.0
    assert paired([1] * 30) < 0.001
