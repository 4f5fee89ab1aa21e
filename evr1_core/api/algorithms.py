"""The base class of algorithms, and the tensors that go in and come out.

``B`` responses, ``T`` response tokens. Masks are bool, True on trained tokens, the end token included. Groups are found by
``group_ids``, never by position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attrs import define, field, frozen

if TYPE_CHECKING:
    from torch import Tensor

Need = Literal["critic", "greedy_baseline", "offline", "components"]


@frozen(kw_only=True, eq=False)
class ScoreBatch:
    """The scored responses of one step.

    ``rewards`` float ``[B]``: weighted total, no KL; ``components``: each part ``[B]``, unweighted. ``group_ids`` int64 ``[B]``,
    equal for one prompt; ``offline`` bool ``[B]``: a stored trajectory; ``judged`` bool ``[B]``. ``mask`` bool ``[B, T]``;
    ``token_rewards`` ``[B, T]``: the reward on the last token, less a KL penalty. ``values`` ``[B, T]`` from the critic;
    ``greedy_rewards`` ``[B]``.
    """

    rewards: Tensor
    components: Mapping[str, Tensor]
    group_ids: Tensor
    offline: Tensor
    judged: Tensor
    mask: Tensor
    token_rewards: Tensor
    values: Tensor | None = None
    greedy_rewards: Tensor | None = None


@frozen(kw_only=True, eq=False)
class Advantages:
    """``values`` ``[B, T]``, 0 outside the mask; ``returns`` ``[B, T]`` for a critic."""

    values: Tensor
    returns: Tensor | None = None


@frozen(kw_only=True, eq=False)
class LossBatch:
    """Part of one optimiser step. All ``[B, T]`` but ``offline`` ``[B]``.

    ``weights``: rollout correction, times the policy term only. ``behaviour_logprobs``: recorded, for offline rows.
    ``global_tokens`` and ``global_sequences`` count the whole mini-batch, over all ranks and before splitting; ``max_tokens`` is
    the configured limit.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    advantages: Tensor
    mask: Tensor
    offline: Tensor
    global_tokens: int
    global_sequences: int
    max_tokens: int
    weights: Tensor | None = None
    behaviour_logprobs: Tensor | None = None


@frozen(kw_only=True, eq=False)
class LossResult:
    """``loss``: a scalar, this part's share of the global mean (parts add up). ``metrics``: name to (numerator, denominator),
    summed over parts and divided once; ``maxima``: name to value, of which the largest over all parts counts."""

    loss: Tensor
    metrics: Mapping[str, tuple[Tensor, Tensor]] = field(factory=dict)
    maxima: Mapping[str, Tensor] = field(factory=dict)


@define(kw_only=True)
class Algorithm(ABC):
    """Credit and loss. A plugin is an attrs class; its fields are its options.

    ``min_group``: responses that a prompt needs. ``rollouts`` False: nothing is sampled, only stored trajectories are trained on.
    ``presets``: defaults of other settings, by dotted key.
    """

    api: ClassVar[int]
    min_group: ClassVar[int] = 1
    rollouts: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset()
    presets: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def advantages(self, batch: ScoreBatch) -> Advantages:
        """What each token is worth."""

    @abstractmethod
    def policy_loss(self, batch: LossBatch) -> LossResult:
        """The loss of a part of a mini-batch, over global counts."""

    def keep(self, batch: ScoreBatch) -> Tensor | None:
        """bool ``[B]``: rows to train on; None keeps all."""
        return None
