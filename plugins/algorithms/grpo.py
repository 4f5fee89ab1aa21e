"""Group relative policy optimisation."""

from __future__ import annotations

from attrs import define, field, validators

from evr1_core.api import Advantages, Algorithm, LossBatch, LossResult, ScoreBatch
from evr1_core.api.tensors import AGGREGATIONS, Aggregation, by_group, outcome, spread_over_tokens
from evr1_plugins.algorithms import _policy

EPSILON = 1e-6  # beside the standard deviation, in the scale of rewards


@define(kw_only=True)
class GRPO(Algorithm):
    """GRPO (arXiv:2402.03300): ``(R - mean) / (std + 1e-6)`` within the group, clipped surrogate with dual clip.

    std has ddof 1; a group without spread gets 0. The published video recipe (arXiv:2604.16893) clips at 0.2 below and 0.28 above
    (arXiv:2503.14476) and averages over tokens.
    """

    api = 1
    min_group = 2

    clip_low: float = field(
        default=0.2, validator=[validators.ge(0), validators.le(1)], metadata={"help": "lower clip: 1 - clip_low"}
    )
    clip_high: float = field(default=0.28, validator=validators.ge(0), metadata={"help": "upper clip: 1 + clip_high"})
    dual_clip: float | None = field(
        default=3.0, metadata={"help": "bound of the ratio where the advantage is negative; null: none"}
    )
    aggregation: Aggregation = field(
        default="token-mean", validator=validators.in_(AGGREGATIONS), metadata={"help": "mean over what"}
    )

    @dual_clip.validator
    def _above_the_upper_clip(self, _: object, value: float | None) -> None:
        if value is not None and value <= 1 + self.clip_high:
            raise ValueError(f"dual_clip must be above 1 + clip_high = {1 + self.clip_high:g}; is {value:g}")

    def advantages(self, batch: ScoreBatch) -> Advantages:
        scores = outcome(batch.token_rewards, batch.mask)
        credits = by_group(scores, batch.group_ids, batch.judged, lambda r: (r - r.mean()) / (r.std() + EPSILON))
        return Advantages(values=spread_over_tokens(credits, batch.mask))

    def policy_loss(self, batch: LossBatch) -> LossResult:
        return _policy.clipped(batch, low=self.clip_low, high=self.clip_high, dual=self.dual_clip, aggregation=self.aggregation)
