"""REINFORCE against the greedy response."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from evr1_core.api import Advantages, ScoreBatch
from evr1_core.api.algorithms import Need
from evr1_core.api.tensors import reward_to_go

from ._policy import ClippedLoss


@define(kw_only=True)
class ReMax(ClippedLoss):
    """ReMax (arXiv:2310.10505): ``A = G - b``; G is the reward to go, b what the greedy response to the same prompt earns.

    One more response a prompt, at temperature 0, which is not trained on. A single sampled response is enough.
    """

    api = 1
    needs: ClassVar[frozenset[Need]] = frozenset({"greedy_baseline"})

    def advantages(self, batch: ScoreBatch) -> Advantages:
        assert batch.greedy_rewards is not None
        returns = reward_to_go(batch.token_rewards, batch.mask)
        return Advantages(values=(returns - batch.greedy_rewards.unsqueeze(1)) * batch.mask, returns=returns)
