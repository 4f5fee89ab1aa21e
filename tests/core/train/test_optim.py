"""Learning-rate schedules against the worked numbers, and updates that must not happen."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from evr1_core.api import ConfigError
from evr1_core.config.schema import TrainConfig
from evr1_core.train.optim import Optimizer, lr_factor

WORKED = [
    ("constant", 4, 6, 0.0, 0.9, [0.25, 0.5, 0.75, 1, 1, 1]),
    ("linear", 2, 10, 0.1, 0.9, [0.5, 1, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1]),
    (
        "cosine",
        2,
        10,
        0.1,
        0.9,
        [0.5, 1, 0.96574579, 0.86819805, 0.72220754, 0.55, 0.37779246, 0.23180195, 0.13425421, 0.1],
    ),
    ("wsd", 2, 12, 0.1, 0.5, [0.5, 1, 1, 1, 1, 1, 1, 0.91405765, 0.68905765, 0.41094235, 0.18594235, 0.1]),
]


@pytest.mark.parametrize(("kind", "warmup", "total", "low", "stable", "expected"), WORKED)
def test_factors_are_the_worked_ones(kind, warmup, total, low, stable, expected):
    factors = [
        lr_factor(kind, update, warmup=warmup, total=total, min_ratio=low, stable_ratio=stable) for update in range(1, total + 1)
    ]
    assert factors == pytest.approx(expected, abs=1e-6)


def test_norms_and_biases_do_not_decay():
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    before = {name: value.detach().clone() for name, value in module.named_parameters()}
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    Optimizer(module, TrainConfig(lr=0.1, weight_decay=0.5), 1).step()
    for name, value in module.named_parameters():
        factor = 1 - 0.1 * 0.5 if value.ndim == 2 else 1.0
        torch.testing.assert_close(value.detach(), before[name] * factor)


def test_a_gradient_that_is_no_number_changes_nothing():
    module = nn.Linear(2, 1, bias=False)
    optimizer = Optimizer(module, TrainConfig(lr=0.1), 3)
    module.weight.grad = torch.tensor([[math.nan, 1.0]])
    before = module.weight.detach().clone()
    metrics = optimizer.step()
    assert metrics["actor/skipped_updates"] == 1.0
    assert "actor/grad_norm" not in metrics
    assert torch.equal(module.weight.detach(), before)
    assert module.weight.grad is None


def test_warmup_longer_than_the_run_is_refused():
    with pytest.raises(ConfigError, match="more than the 3 updates"):
        Optimizer(nn.Linear(1, 1), TrainConfig(warmup_steps=4), 3)
