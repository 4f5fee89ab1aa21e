"""Yes or no."""

from __future__ import annotations

import pytest

from evr1_core.api import BadGoldError
from evr1_plugins.rewards.boolean import Boolean


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy", "parsed"),
    [
        ("yes", "Yes, a notice board is visible.", 1.0, True),
        (True, "True", 1.0, True),
        (1, "yes", 1.0, True),
        ("false", "No.", 1.0, True),
        ("no", "yes", 0.0, True),
        ("yes", "yes and no", 0.0, False),
        ("yes", "", 0.0, False),
        ("yes", None, 0.0, False),
    ],
)
def test_accuracy(record, score, gold, answer, accuracy, parsed) -> None:
    result = score(Boolean(), record("boolean", gold), answer)
    assert (result.accuracy, result.parsed) == (accuracy, parsed)


def test_broken_gold(record, score) -> None:
    with pytest.raises(BadGoldError, match="truth value"):
        score(Boolean(), record("boolean", "maybe"), "yes")
