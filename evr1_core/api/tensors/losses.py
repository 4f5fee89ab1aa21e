"""Losses of tokens, before they are averaged."""

from __future__ import annotations

import torch
from torch import Tensor


def ppo_losses(
    log_ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Clipped surrogate (arXiv:1707.06347) with separate bounds (arXiv:2503.14476) and dual clip (arXiv:1912.09729).

    Returns the loss per token, where the upper clip binds, and where the dual clip binds; all ``[B, T]``. ``log_ratio`` is clamped
    by the caller.
    """
    ratio = log_ratio.exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - low, 1 + high)
    losses = torch.maximum(plain, clipped)
    binds = clipped > plain
    if dual is None:
        return losses, binds, torch.zeros_like(binds)
    bound = -advantages * dual
    dual_binds = (advantages < 0) & (losses > bound)
    return torch.where(advantages < 0, torch.minimum(losses, bound), losses), binds, dual_binds
