"""Proximal policy optimisation with a critic."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.algorithms import Need
from evr1_core.api.tensors import generalised_advantages, whiten

from . import _options
from ._policy import ClippedLoss


@define(kw_only=True)
class PPO(ClippedLoss):
    """PPO (arXiv:1707.06347): ``A = whiten(GAE)`` (arXiv:1506.02438) from a critic's values, which learn the unwhitened returns.

    The critic's settings are ``critic.*``.
    """

    api = 1
    needs: ClassVar[frozenset[Need]] = frozenset({"critic"})

    gamma: float = _options.discount("discount of a later reward, per token")
    lam: float = _options.discount("how far GAE looks: 0 one token, 1 to the end")

    def advantages(self, batch: ScoreBatch) -> Advantages:
        assert batch.values is not None
        advantages, returns = generalised_advantages(batch.token_rewards, batch.values, batch.mask, gamma=self.gamma, lam=self.lam)
        return Advantages(values=whiten(advantages, batch.mask), returns=returns)
