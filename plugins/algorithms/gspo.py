"""Group sequence policy optimisation."""

from __future__ import annotations

import warnings

from attrs import define
from torch import Tensor

from evr1_core.api import Advantages, LossBatch, ScoreBatch
from evr1_core.api.tensors import Aggregation, ppo_losses, sequence_log_ratio

from . import _options
from ._groups import compared, standardised
from ._options import BaselineRows, option
from ._policy import PolicyLoss, Surrogate

WIDE = 0.01  # a mean over a response hardly moves: clips made for tokens never bind


@define(kw_only=True)
class GSPO(PolicyLoss):
    """GSPO (arXiv:2507.18071): GRPO's advantage; the ratio is that of the whole response, ``s = exp(mean(log r))``.

    ``per_token``: the same value, with the gradient of each token through its own probability (GSPO-token). There is no dual clip.
    """

    api = 1
    min_group = 2

    clip_low: float = _options.clip_low(3e-4)
    clip_high: float = _options.clip_high(4e-4)
    aggregation: Aggregation = _options.aggregation("seq-mean-token-mean")
    per_token: bool = option(False, "GSPO-token: gradients by token, for advantages that differ within a response")
    baseline_rows: BaselineRows = _options.baseline_rows()

    @aggregation.validator
    def _by_response(self, _: object, value: str) -> None:
        if value != "seq-mean-token-mean":
            raise ValueError(f"aggregation must be seq-mean-token-mean, since any other weighs responses by length; is {value!r}")

    def __attrs_post_init__(self) -> None:
        if max(self.clip_low, self.clip_high) > WIDE:
            clips = f"clip_low = {self.clip_low:g}, clip_high = {self.clip_high:g}"
            warnings.warn(f"gspo: {clips}: a response's ratio hardly leaves 1, clips above {WIDE:g} never bind", stacklevel=2)

    def advantages(self, batch: ScoreBatch) -> Advantages:
        return compared(batch, standardised, self.baseline_rows)

    def surrogate(self, batch: LossBatch, log_ratio: Tensor) -> Surrogate:
        log_s = sequence_log_ratio(log_ratio, batch.mask, per_token=self.per_token)
        losses, clipped, none = ppo_losses(log_s, batch.advantages, low=self.clip_low, high=self.clip_high, dual=None)
        bounds = (1 - self.clip_low, 1 + self.clip_high)
        return Surrogate(losses=losses, ratio=log_s.detach().exp(), bounds=bounds, clipped=clipped, dual_clipped=none)
