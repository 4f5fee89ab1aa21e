"""Statistics and reductions, against worked numbers and independent loops."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api.tensors import (
    aggregate,
    by_group,
    clamp20,
    last_token,
    masked_mean,
    outcome,
    place_on_last_token,
    ppo_losses,
    spread_over_tokens,
    whiten,
)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


MASK = torch.tensor([[True, False, True, True], [True, True, False, False], [False, False, False, False]])


def test_whitening_by_hand():
    returns = tensor([[1.5, 0, 1, 1], [-1, -1, 0, 0], [7, 7, 7, 7]])
    expected = tensor([[0.99654575, 0, 0.58131836, 0.58131836], [-1.07959123, -1.07959123, 0, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(whiten(returns, MASK), expected, atol=1e-6, rtol=0)


def test_whitening_one_value_gives_nothing():
    assert not whiten(tensor([[3.0, 4.0]]), torch.tensor([[True, False]])).any()


def test_masked_mean_of_nothing_is_zero():
    assert masked_mean(tensor([1.0, 2.0]), torch.tensor([False, False])) == 0
    assert masked_mean(tensor([1.0, 2.0, 9.0]), torch.tensor([True, True, False])) == 1.5


def test_a_score_stands_on_the_last_valid_token():
    placed = place_on_last_token(tensor([5.0, 6.0, 7.0]), MASK)
    assert placed.tolist() == [[0, 0, 0, 5], [0, 6, 0, 0], [0, 0, 0, 0]]
    assert last_token(MASK).tolist() == [3, 1, -1]
    assert outcome(placed, MASK).tolist() == [5, 6, 0]
    assert spread_over_tokens(tensor([2.0, 3.0, 4.0]), MASK).tolist() == [[2, 0, 2, 2], [3, 3, 0, 0], [0, 0, 0, 0]]


def test_groups_leave_out_what_does_not_count():
    scores, groups = tensor([1.0, 0.0, 9.0, 0.5, 0.5]), torch.tensor([0, 0, 0, 1, 1])
    counted = torch.tensor([True, True, False, True, True])
    credit = by_group(scores, groups, counted, lambda values: values - values.mean())
    assert credit.tolist() == [0.5, -0.5, 0, 0, 0]


def test_a_group_of_one_has_no_credit():
    assert by_group(tensor([3.0]), torch.tensor([0]), torch.tensor([True]), lambda values: values).tolist() == [0]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("token-mean", (1 + 2 + 4 + 5) / 10),
        ("seq-mean-token-mean", ((1 + 2 + 4) / 3 + 5 / 1) / 4),
        ("seq-mean-token-sum", 12 / 4),
        ("seq-mean-token-sum-norm", 12 / (4 * 8)),
    ],
)
def test_aggregation_by_hand(mode, expected):
    losses = tensor([[1, 99, 2, 4], [5, 99, 99, 99], [99, 99, 99, 99]])
    mask = torch.tensor([[True, False, True, True], [True, False, False, False], [False] * 4])
    assert float(aggregate(losses, mask, mode, tokens=10, sequences=4, max_tokens=8)) == pytest.approx(expected)


def test_infinite_losses_outside_the_mask_do_no_harm():
    losses = torch.tensor([[1.0, float("inf")]], requires_grad=True)
    total = aggregate(losses, torch.tensor([[True, False]]), "token-mean", tokens=1, sequences=1, max_tokens=2)
    total.backward()
    assert float(total.detach()) == 1.0
    assert losses.grad.tolist() == [[1.0, 0.0]]


def test_surrogate_by_hand():
    log_ratio = tensor([0.2, -0.4, 0.4, -0.4, 1.5])
    advantages = tensor([1.2, 1.2, 1.2, -0.8, -0.8])
    losses, upper, lower = ppo_losses(log_ratio, advantages, low=0.2, high=0.28, dual=3.0)
    assert losses.tolist() == pytest.approx([-1.46568331, -0.80438406, -1.536, 0.64, 2.4], abs=1e-6)
    assert upper.tolist() == [False, False, True, True, False]
    assert lower.tolist() == [False, False, False, False, True]


def test_ratios_stay_finite():
    assert clamp20(tensor([-500.0, 3.0, 500.0])).tolist() == [-20, 3, 20]
