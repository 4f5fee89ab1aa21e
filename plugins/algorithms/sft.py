"""Supervised steps on stored trajectories: the warm start before sampling is worth its time."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from evr1_core.api import Advantages, Algorithm, LossBatch, LossResult, ScoreBatch
from evr1_core.api.algorithms import Need
from evr1_core.api.tensors import at_least_float32


@define(kw_only=True)
class SupervisedFineTuning(Algorithm):
    """Cross-entropy on each record's stored trajectory: advantage 1, loss ``-log p``, averaged over tokens. Nothing is sampled."""

    api = 1
    rollouts = False
    needs: ClassVar[frozenset[Need]] = frozenset({"offline"})

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return Advantages(values=batch.mask.to(at_least_float32(batch.rewards).dtype))

    def policy_loss(self, batch: LossBatch) -> LossResult:
        return LossResult(loss=self.mean(-at_least_float32(batch.logprobs) * batch.advantages, batch))
