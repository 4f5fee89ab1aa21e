"""What a validation pass says about several responses to a record."""

from __future__ import annotations

import pytest

from evr1_core.train.validate import summary


def row(uid, accuracy):
    return {"uid": uid, "task": "multiple choice", "source": "", "accuracy": accuracy, "parsed": accuracy is not None}


def test_pass_at_k_by_hand():
    """Three records, four responses each: 1, 2 and 0 of them are right; one was not judged."""
    rows = [row("a", value) for value in (1.0, 0, 0, 0)] + [row("b", value) for value in (0.5, 1.0, 0.49, 0)]
    rows += [row("c", value) for value in (0, None, 0, 0)]
    metrics = summary(rows, 4)
    assert metrics["val/samples"] == 3
    assert metrics["val/pass@1"] == pytest.approx((1 / 4 + 2 / 4 + 0) / 3)
    assert metrics["val/pass@2"] == pytest.approx((1 - 3 / 6 + 1 - 1 / 6 + 0) / 3)  # pairs of wrong ones among six pairs
    assert metrics["val/pass@4"] == pytest.approx(2 / 3)
    assert metrics["val/not_judged"] == 1
    assert metrics["val/multiple_choice/pass@2"] == metrics["val/pass@2"]


def test_one_response_has_no_pass_at_k():
    assert not [name for name in summary([row("a", 1.0)]) if "pass" in name]
