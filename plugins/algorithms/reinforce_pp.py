"""REINFORCE with advantages whitened over the batch."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.tensors import reward_to_go, whiten

from . import _options
from ._policy import ClippedLoss


@define(kw_only=True)
class ReinforcePlusPlus(ClippedLoss):
    """REINFORCE++ (arXiv:2501.03262): ``A = whiten(G)`` over all tokens of the batch; G is the discounted reward to go.

    It needs neither a group nor a critic. Where a KL penalty is on (``kl.place``), it is k1 and belongs in the reward.
    """

    api = 1
    presets: ClassVar[dict[str, Any]] = {"kl.kind": "k1"}

    gamma: float = _options.discount("discount of a later reward, per token")

    def advantages(self, batch: ScoreBatch) -> Advantages:
        returns = reward_to_go(batch.token_rewards, batch.mask, self.gamma)
        return Advantages(values=whiten(returns, batch.mask), returns=returns)
