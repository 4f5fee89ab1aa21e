"""Weights for samples of an engine whose probabilities differ from the trainer's."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from evr1_core.api.tensors.reductions import at_least_float32, clamp20, masked_mean

CorrectionLevel = Literal["token", "sequence", "geometric"]
CorrectionMode = Literal["truncate", "mask"]


def rollout_weights(
    old: Tensor,
    rollout: Tensor,
    mask: Tensor,
    *,
    level: CorrectionLevel,
    mode: CorrectionMode,
    high: float,
    low: float | None = None,
    counted: Tensor | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """(weights ``[B, T]`` of the policy loss, 0 outside the mask; metrics under ``rollout_corr/``).

    ``old``: the trainer's log-probabilities of the sampled tokens, ``rollout``: the sampler's. Rows not ``counted`` (bool ``[B]``;
    None: all are) were not sampled: they weigh 1 and take no part in the metrics. The ratio is taken of each token, of the whole
    response, or of the response per token (geometric mean); ``truncate`` bounds it, ``mask`` makes it 0 out of bounds. Dropped
    tokens stay in the denominators of the loss.
    """
    sampled = mask if counted is None else mask & counted.unsqueeze(1)
    difference = at_least_float32(old.detach()) - at_least_float32(rollout.detach())
    x = torch.where(sampled, difference, torch.zeros_like(difference))
    raw = _ratio(x, sampled, level)
    applied = _bounded(raw, mode, high, low)
    weights = torch.where(sampled, applied, torch.ones_like(applied)) * mask
    return weights, _metrics(x, raw, applied, sampled, high)


def _ratio(x: Tensor, mask: Tensor, level: CorrectionLevel) -> Tensor:
    if level == "token":
        return clamp20(x).exp()
    total = x.sum(dim=1, keepdim=True)
    if level == "geometric":
        total = total / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return clamp20(total).exp().expand_as(x)


def _bounded(ratio: Tensor, mode: CorrectionMode, high: float, low: float | None) -> Tensor:
    if mode == "truncate":
        return ratio.clamp(min=low, max=high)
    inside = (ratio <= high) & (ratio >= (0.0 if low is None else low))
    return torch.where(inside, ratio, torch.zeros_like(ratio))


def _metrics(x: Tensor, raw: Tensor, applied: Tensor, mask: Tensor, high: float) -> dict[str, float]:
    if not bool(mask.any()):
        return {}
    x = clamp20(x)
    squares = (applied**2 * mask).sum()
    values = {
        "kl": masked_mean(-x, mask),
        "k3_kl": masked_mean(x.exp() - 1 - x, mask),
        "is_mean": masked_mean(applied, mask),
        "is_max": raw[mask].max(),
        "frac_high": masked_mean((raw > high).to(x.dtype), mask),
        "ess": (applied * mask).sum() ** 2 / (mask.sum() * squares) if squares else squares,
        "chi2_token": masked_mean((2 * x).exp(), mask) - 1,
    }
    return {f"rollout_corr/{name}": float(value) for name, value in values.items()}
