"""Policy losses from ratios of new and old probabilities, and their metrics."""

from __future__ import annotations

from abc import abstractmethod

import torch
from attrs import define, frozen, validators
from torch import Tensor

from evr1_core.api import Algorithm, Evr1Error, LossBatch, LossResult
from evr1_core.api.tensors import (
    Aggregation,
    aggregate,
    at_least_float32,
    clamp20,
    importance_weighted,
    ppo_losses,
    shaped_imitation,
)

from . import _options
from ._options import OffMode, option


@frozen(kw_only=True)
class Surrogate:
    """The loss of each token, the ratio with its bounds, and where the clip and the dual clip bind; tensors ``[B, T]``."""

    losses: Tensor
    ratio: Tensor
    bounds: tuple[float, float]
    clipped: Tensor
    dual_clipped: Tensor


@define(kw_only=True)
class PolicyLoss(Algorithm):
    """A loss by ratios, weighted by the rollout correction. Stored trajectories may have a loss of their own."""

    aggregation: Aggregation = _options.aggregation()
    off_mode: OffMode = _options.off_mode()
    off_gamma: float = option(0.1, "off_mode luffy: the probability that learns fastest", validators.gt(0))
    off_max: float = option(2.0, "off_mode is: bound of the ratio", validators.gt(0))
    off_drop_negative: bool = option(False, "stored trajectories with a negative advantage have no loss")

    @abstractmethod
    def surrogate(self, batch: LossBatch, log_ratio: Tensor) -> Surrogate:
        """The loss of samples. ``log_ratio`` ``[B, T]`` is 0 outside the mask."""

    def policy_loss(self, batch: LossBatch) -> LossResult:
        difference = at_least_float32(batch.logprobs) - at_least_float32(batch.old_logprobs)
        log_ratio = torch.where(batch.mask, clamp20(difference), torch.zeros_like(difference))
        surrogate = self.surrogate(batch, log_ratio)
        losses = surrogate.losses if batch.weights is None else surrogate.losses * batch.weights
        loss = self.mean(self._with_stored(losses, batch), batch)
        own = batch.mask & ~batch.offline.unsqueeze(1)
        metrics = _metrics(surrogate, difference.detach(), batch.advantages, own)
        return LossResult(loss=loss, metrics=metrics, maxima=_maxima(log_ratio.detach(), own))

    def mean(self, losses: Tensor, batch: LossBatch) -> Tensor:
        counts = {"tokens": batch.global_tokens, "sequences": batch.global_sequences, "max_tokens": batch.max_tokens}
        return aggregate(losses, batch.mask, self.aggregation, **counts)

    def _with_stored(self, losses: Tensor, batch: LossBatch) -> Tensor:
        """The losses, those of stored trajectories replaced as ``off_mode`` says."""
        if not bool(batch.offline.any()):
            return losses
        stored, logprobs = batch.offline.unsqueeze(1), at_least_float32(batch.logprobs)
        if self.off_mode == "luffy":
            losses = torch.where(stored, shaped_imitation(logprobs, batch.advantages, gamma=self.off_gamma), losses)
        elif self.off_mode == "is":
            if batch.behaviour_logprobs is None:
                raise Evr1Error(
                    "algorithm.options.off_mode: `is` needs the log-probabilities that every stored trajectory was sampled with; "
                    "give them in the records (`offline_logprobs`), or choose `on_policy` or `luffy`"
                )
            theirs = importance_weighted(logprobs, batch.behaviour_logprobs, batch.advantages, bound=self.off_max)
            losses = torch.where(stored, theirs, losses)
        if self.off_drop_negative:
            losses = torch.where(stored & (batch.advantages < 0), torch.zeros_like(losses), losses)
        return losses


@define(kw_only=True)
class ClippedLoss(PolicyLoss):
    """The surrogate of PPO with a clip on each side, and a second one where the advantage is negative."""

    clip_low: float = _options.clip_low()
    clip_high: float = _options.clip_high()
    dual_clip: float | None = option(3.0, "bound of the ratio where the advantage is negative; null: none")

    @dual_clip.validator
    def _above_the_upper_clip(self, _: object, value: float | None) -> None:
        if value is not None and value <= 1 + self.clip_high:
            raise ValueError(f"dual_clip must be above 1 + clip_high = {1 + self.clip_high:g}; is {value:g}")

    def surrogate(self, batch: LossBatch, log_ratio: Tensor) -> Surrogate:
        losses, clipped, dual_clipped = ppo_losses(
            log_ratio, batch.advantages, low=self.clip_low, high=self.clip_high, dual=self.dual_clip
        )
        bounds = (1 - self.clip_low, 1 + self.clip_high)
        return Surrogate(losses=losses, ratio=log_ratio.detach().exp(), bounds=bounds, clipped=clipped, dual_clipped=dual_clipped)


def _metrics(surrogate: Surrogate, difference: Tensor, advantages: Tensor, own: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """How far the policy moved from its own samples: stored trajectories are left out."""
    count, (low, high) = own.sum(), surrogate.bounds

    def share(where: Tensor) -> tuple[Tensor, Tensor]:
        return (where & own).sum(), count

    return {
        "actor/ppo_kl": (torch.where(own, -difference, 0.0).sum(), count),
        "actor/pg_clipfrac": share(surrogate.clipped),
        "actor/pg_clipfrac_lower": share(surrogate.dual_clipped),
        "actor/clip_high_frac": share((surrogate.ratio > high) & (advantages > 0)),
        "actor/clip_low_frac": share((surrogate.ratio < low) & (advantages < 0)),
        "actor/ratio_mean": (torch.where(own, clamp20(difference).exp(), 0.0).sum(), count),
    }


def _maxima(log_ratio: Tensor, own: Tensor) -> dict[str, Tensor]:
    return {"actor/ratio_max": torch.where(own, log_ratio.exp(), 0.0).max()} if bool(own.any()) else {}
