"""How far the engine's probabilities are from the trainer's, and what is done about it."""

from __future__ import annotations

import torch
from torch import Tensor

from evr1_core.api.tensors import rollout_weights
from evr1_core.config.schema import CorrectionConfig
from evr1_core.train.ranks import Ranks

FARTHEST = "rollout_corr/logprob_diff_max"  # name of a metric


class Mismatch:
    """The rollout correction of one update, part by part; its metrics are those of all parts, of all processes, together."""

    def __init__(self, config: CorrectionConfig) -> None:
        self._config = config
        self._seen: list[tuple[Tensor, Tensor]] = []

    def corrected(self, old: Tensor, sampled: Tensor, mask: Tensor, counted: Tensor) -> tuple[Tensor | None, Tensor]:
        """(weights of the policy loss or None, old log-probs), each ``[B, T]``. ``old`` are the trainer's, ``sampled`` those of the
        engine; rows that are not ``counted`` (bool ``[B]``) were not sampled, and stay as they are."""
        config, own = self._config, mask & counted.unsqueeze(1)
        self._seen.append((old.detach()[own].cpu(), sampled[own].cpu()))
        if config.mode == "bypass":  # the clip of the loss is the correction: weights beside it would count it twice
            return None, torch.where(own, sampled, old)
        if config.mode == "off":
            return None, old
        weights, _ = rollout_weights(
            old, sampled, mask, level=config.level, mode=config.mode, high=config.high, low=config.low, counted=counted
        )
        return weights, old

    def metrics(self, ranks: Ranks) -> dict[str, float]:
        """Under ``rollout_corr/``, by token; nothing when nothing was sampled."""
        every = [pair for seen in ranks.gather(self._seen) for pair in seen]
        if not sum(len(old) for old, _ in every):
            return {}
        old, sampled = (torch.cat([pair[place] for pair in every]).unsqueeze(0) for place in (0, 1))
        config = self._config
        _, metrics = rollout_weights(
            old,
            sampled,
            torch.ones_like(old, dtype=torch.bool),
            level="token",
            mode="mask" if config.mode == "mask" else "truncate",
            high=config.high,
            low=config.low,
        )
        apart = (old - sampled).abs()
        return metrics | {
            "rollout_corr/logprob_diff_mean": float(apart.mean()),
            FARTHEST: float(apart.max()),
        }
