"""Measures against hand-worked values and independent slow versions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api.clips import BoxSpace
from evr1_core.api.metrics import (
    iou_1d,
    iou_1d_union,
    iou_2d,
    mean_relative_accuracy,
    relative_accuracy,
    viou,
    word_error_rate,
)
from evr1_core.api.spaces import converted, convertible


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ((3.2, 5.1), (3.0, 5.0), 1.8 / 2.1),
        ((0, 60), (10, 13), 0.05),
        ((5, 9), (0, 5), 0.0),
        ((0, 1), (5, 6), 0.0),
        ((4, 4), (4, 4), 1.0),
        ((4, 4), (3, 5), 0.0),
        ((3, 5), (4, 4), 0.0),
        ((0, 1e308), (0, 1e308), 1.0),
    ],
)
def test_iou_1d(a: tuple[float, float], b: tuple[float, float], value: float) -> None:
    assert iou_1d(a, b) == pytest.approx(value)


def test_iou_1d_union() -> None:
    assert iou_1d_union([(0, 2), (4, 6)], [(1, 5)]) == pytest.approx(2 / 6)
    assert iou_1d_union([(0, 2), (1, 3)], [(0, 3)]) == 1.0
    assert iou_1d_union([(0, 10)], [(0, 1), (9, 10)]) == pytest.approx(0.2)


seconds = st.integers(0, 12)
span_lists = st.lists(st.tuples(seconds, st.integers(1, 5)).map(lambda t: (t[0], t[0] + t[1])), min_size=1, max_size=5)


@given(span_lists, span_lists)
def test_iou_1d_union_counts_unit_cells(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = ({cell for start, end in spans for cell in range(start, end)} for spans in (a, b))
    assert iou_1d_union(a, b) == pytest.approx(len(left & right) / len(left | right))


boxes = st.tuples(seconds, seconds, st.integers(1, 5), st.integers(1, 5)).map(lambda t: (t[0], t[1], t[0] + t[2], t[1] + t[3]))


@given(boxes, boxes)
def test_iou_2d_counts_pixels(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> None:
    left, right = ({(x, y) for x in range(c[0], c[2]) for y in range(c[1], c[3])} for c in (a, b))
    assert iou_2d(a, b) == pytest.approx(len(left & right) / len(left | right))


def test_iou_2d_edges() -> None:
    assert iou_2d((0, 0, 10, 10), (5, 5, 15, 15)) == pytest.approx(25 / 175)
    assert iou_2d((10, 10, 10, 10), (10, 10, 20, 20)) == 0.0
    assert iou_2d((10, 10, 10, 10), (10, 10, 10, 10)) == 0.0
    assert iou_2d((-1e200, -1e200, 1e200, 1e200), (10, 10, 20, 20)) == 0.0
    assert iou_2d((-1e9, -1e9, 1e9, 1e9), (10, 10, 20, 20)) == pytest.approx(0.0, abs=1e-12)


def test_viou_divides_by_the_union() -> None:
    # benchmarks.md, stvg: gold seconds 4, 5, 6, predicted 5, 6, 7, IoU .5 and .7 on 5 and 6
    gold = {second: (0.0, 0.0, 10.0, 10.0) for second in (4, 5, 6)}
    guess = {5: (0.0, 0.0, 10.0, 5.0), 6: (0.0, 0.0, 10.0, 7.0), 7: (0.0, 0.0, 10.0, 10.0)}
    assert viou(guess, gold) == pytest.approx(0.30)
    assert viou({5: None, 4: gold[4]}, gold) == pytest.approx(1 / 3)
    assert viou({}, {}) == 0.0


@pytest.mark.parametrize(
    ("guess", "gold", "value"),
    [(3, 4, 0.6), (5, 10, 0.1), (8, 10, 0.7), (250, 100, 0.0), (0, 0, 1.0), (1e-9, 0, 0.0), (-4, -4, 1.0), (4, -4, 0.0)],
)
def test_mean_relative_accuracy(guess: float, gold: float, value: float) -> None:
    assert mean_relative_accuracy(guess, gold) == value


@given(st.integers(1, 2000), st.integers(0, 4000))
def test_mean_relative_accuracy_in_exact_arithmetic(gold: int, guess: int) -> None:
    exact = sum(Fraction(abs(guess - gold), gold) <= Fraction(k, 20) for k in range(1, 11))
    assert mean_relative_accuracy(guess / 10, gold / 10) == exact / 10


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_measures_stay_in_range(a: float, b: float) -> None:
    span, other = (min(abs(a), abs(b)), max(abs(a), abs(b))), (0.0, abs(a))
    box = (min(a, b), min(a, b), max(a, b), max(a, b))
    values = [mean_relative_accuracy(a, b), relative_accuracy(a, b), iou_1d(span, other), iou_2d(box, (0.0, 0.0, 1.0, 1.0))]
    values += [iou_2d(box, box), iou_1d_union([span, other], [other])]
    assert all(math.isfinite(value) and 0 <= value <= 1 for value in values)


def test_relative_accuracy() -> None:
    assert relative_accuracy(3, 4) == 0.75
    assert relative_accuracy(9, 4) == 0.0
    assert relative_accuracy(0, 0) == 1.0


def test_box_spaces() -> None:
    pixel = BoxSpace(kind="pixel", width=640, height=480)
    norm = BoxSpace(kind="norm1000")
    resized = BoxSpace(kind="resized", resized_width=320, resized_height=320)
    assert converted((250, 500, 750, 1000), norm, pixel) == (160, 240, 480, 480)
    assert converted((160, 160, 320, 320), resized, pixel) == (320, 240, 640, 480)
    assert converted((0.25, 0.5, 1, 1), BoxSpace(kind="norm1"), norm) == (250, 500, 1000, 1000)
    assert not convertible(norm, BoxSpace(kind="pixel"))
    assert convertible(BoxSpace(kind="pixel"), BoxSpace(kind="pixel"))


@pytest.mark.parametrize(
    ("guess", "gold", "rate"),
    [
        ("a b c d", "a b c d", 0.0),
        ("a x c d", "a b c d", 1 / 4),
        ("a c d", "a b c d", 1 / 4),
        ("a b b c d", "a b c d", 1 / 4),
        ("d c b a", "a b c d", 1.0),
        ("", "a b c d", 1.0),
        ("a " * 40, "a b", 1.0),  # 39 errors of 2 words
        ("", "", 0.0),
        ("a", "", 1.0),
    ],
)
def test_word_error_rate(guess: str, gold: str, rate: float) -> None:
    assert word_error_rate(guess.split(), gold.split()) == rate
