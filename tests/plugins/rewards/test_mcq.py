"""Multiple choice."""

from __future__ import annotations

import pytest

from evr1_core.api import BadGoldError
from evr1_plugins.rewards.mcq import MultipleChoice

CARS = ("A. A red car", "B. A blue van", "C. A green truck", "D. A yellow bus")


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy", "parsed"),
    [
        ("B", "B", 1.0, True),
        ("B. A blue van", "(b)", 1.0, True),
        ("<answer>B</answer>", "A blue van", 1.0, True),
        ("B", "A", 0.0, True),
        ("B", "E", 0.0, False),
        ("B", "", 0.0, False),
        ("B", None, 0.0, False),
        ("A,C", "A and C", 1.0, True),
        ("A,C", "C, A", 1.0, True),
        ("A,C", "A", 0.0, True),
        ("A", "A, C", 0.0, True),
        ("A", "ABCD", 0.0, True),
        ("A", "A or B", 0.0, False),
    ],
)
def test_accuracy(record, score, gold, answer, accuracy, parsed) -> None:
    result = score(MultipleChoice(), record("multiple choice", gold, CARS), answer)
    assert (result.accuracy, result.parsed) == (accuracy, parsed)


@pytest.mark.parametrize("gold", ["E", "", "A or B", "<think>x</think>", "nonsense", '{"a": 1}'])
def test_broken_gold(record, score, gold) -> None:
    with pytest.raises(BadGoldError, match=r"a\.jsonl:1: record 'r1'"):
        score(MultipleChoice(), record("multiple choice", gold, CARS), "A")
