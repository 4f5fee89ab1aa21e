"""The clipped policy loss and its metrics, shared by the algorithms that use it."""

from __future__ import annotations

import torch
from torch import Tensor

from evr1_core.api import LossBatch, LossResult
from evr1_core.api.tensors import Aggregation, aggregate, at_least_float32, clamp20, ppo_losses


def clipped(batch: LossBatch, *, low: float, high: float, dual: float | None, aggregation: Aggregation) -> LossResult:
    """Clipped surrogate over the batch, weighted by the rollout correction where there is one.

    Metrics leave stored trajectories out: they say how far the policy moved from its own samples.
    """
    log_ratio = clamp20(at_least_float32(batch.logprobs) - at_least_float32(batch.old_logprobs))
    losses, upper, lower = ppo_losses(log_ratio, batch.advantages, low=low, high=high, dual=dual)
    if batch.weights is not None:
        losses = losses * batch.weights
    loss = aggregate(
        losses, batch.mask, aggregation, tokens=batch.global_tokens, sequences=batch.global_sequences, max_tokens=batch.max_tokens
    )
    own = batch.mask & ~batch.offline.unsqueeze(1)
    log_ratio = log_ratio.detach()
    metrics = _metrics(log_ratio, batch.advantages, own, upper, lower, low, high)
    maxima = {"actor/ratio_max": torch.where(own, log_ratio.exp(), 0.0).max()} if bool(own.any()) else {}
    return LossResult(loss=loss, metrics=metrics, maxima=maxima)


def _metrics(
    log_ratio: Tensor, advantages: Tensor, own: Tensor, upper: Tensor, lower: Tensor, low: float, high: float
) -> dict[str, tuple[Tensor, Tensor]]:
    ratio = log_ratio.exp()
    count = own.sum()

    def share(where: Tensor) -> tuple[Tensor, Tensor]:
        return (where & own).sum(), count

    return {
        "actor/ppo_kl": (-(log_ratio * own).sum(), count),
        "actor/pg_clipfrac": share(upper),
        "actor/pg_clipfrac_lower": share(lower),
        "actor/clip_high_frac": share((ratio > 1 + high) & (advantages > 0)),
        "actor/clip_low_frac": share((ratio < 1 - low) & (advantages < 0)),
        "actor/ratio_mean": (torch.where(own, ratio, 0.0).sum(), count),
    }
