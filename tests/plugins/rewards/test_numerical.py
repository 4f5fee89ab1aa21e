"""Numbers and regression."""

from __future__ import annotations

import pytest

from evr1_core.api import BadGoldError
from evr1_plugins.rewards.numerical import Numerical


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy"),
    [
        ("1234.5", "1,234.5", 1.0),
        (4, "four", 1.0),
        ("4", "4.0", 1.0),
        ("2", "2.02", 0.0),
        ("3", "3 or 4", 0.0),
        ("50%", "0.5", 1.0),
        ("50%", "50", 1.0),
        ("0.5", "50%", 0.0),
        ("3", "nan", 0.0),
        ("3", None, 0.0),
    ],
)
def test_equality(record, score, gold, answer, accuracy) -> None:
    assert score(Numerical(), record("counting", gold), answer).accuracy == accuracy


def test_tolerance_of_record_and_option(record, score) -> None:
    assert score(Numerical(), record("number", "2", tolerance=0.02), "2.02").accuracy == 1.0
    assert score(Numerical(tolerance=1.0), record("number", "2"), "3").accuracy == 1.0
    assert score(Numerical(tolerance=1.0), record("number", "2", tolerance=0), "3").accuracy == 0.0


@pytest.mark.parametrize(
    ("gold", "answer", "mra", "relative"),
    [
        ("4", "3", 0.6, 0.75),
        ("10", "8", 0.7, 0.8),
        ("10", "5", 0.1, 0.5),
        ("100", "250", 0.0, 0.0),
        ("0", "0", 1.0, 1.0),
        ("0", "1", 0.0, 0.0),
    ],
)
def test_regression(record, score, gold, answer, mra, relative) -> None:
    assert score(Numerical(), record("regression", gold), answer).accuracy == pytest.approx(mra)
    assert score(Numerical(regression="relative"), record("regression", gold), answer).accuracy == pytest.approx(relative)
    assert score(Numerical(), record("regression", gold, regression="relative"), answer).accuracy == pytest.approx(relative)


@pytest.mark.parametrize("extra", [{}, {"tolerance": -1}, {"tolerance": "1"}, {"regression": "best"}])
def test_broken_gold(record, score, extra) -> None:
    gold = "3" if extra else "three or four"
    with pytest.raises(BadGoldError, match="record 'r1'"):
        score(Numerical(), record("regression", gold, **extra), "3")
