"""The base class of algorithms, and the tensors that go in and come out.

``B`` responses, ``T`` response tokens. Masks are bool, True on trained tokens, the end token included. Groups are found by
``group_ids``, never by position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
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
    ``token_rewards`` ``[B, T]``: the reward on the last token, less a KL penalty. ``values`` ``[B, T]``: the critic's, before its
    update, without gradient. ``greedy_rewards`` ``[B]``: the total of the greedy response to the row's prompt.
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
    """Part of one optimiser step. All ``[B, T]`` but ``offline`` ``[B]``; only ``logprobs`` and ``entropy`` carry a gradient.

    ``weights``: rollout correction, times the policy term only, 1 on stored trajectories; None: off. ``behaviour_logprobs``: those
    recorded with stored trajectories, anything on other rows. ``reference_logprobs``: of the frozen reference model; None without
    one. ``entropy``: exact, of the distribution at each position; it has a gradient when the run has an entropy bonus.
    ``global_tokens`` and ``global_sequences`` count the whole mini-batch, over all ranks and before splitting, empty rows left out;
    ``max_tokens`` is the configured limit.
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
    reference_logprobs: Tensor | None = None
    entropy: Tensor | None = None


@frozen(kw_only=True, eq=False)
class LossResult:
    """``loss``: a scalar, this part's share of the global mean (parts add up). ``metrics``: name to (numerator, denominator),
    summed over parts and divided once; ``maxima``: name to value, of which the largest over all parts counts; ``sums``: name to
    this part's share of a loss term, summed over parts."""

    loss: Tensor
    metrics: Mapping[str, tuple[Tensor, Tensor]] = field(factory=dict)
    maxima: Mapping[str, Tensor] = field(factory=dict)
    sums: Mapping[str, Tensor] = field(factory=dict)


@define(kw_only=True)
class Algorithm(ABC):
    """Credit and loss. A plugin is an attrs class; its fields are its options.

    ``min_group``: responses that a prompt needs. ``rollouts`` False: nothing is sampled, only stored trajectories are trained on.
    ``presets``: defaults of other settings, by dotted key. ``needs``: a ``critic`` (``ScoreBatch.values`` in,
    ``Advantages.returns`` out), a ``greedy_baseline`` (``ScoreBatch.greedy_rewards``), ``offline`` trajectories, reward
    ``components`` in every row.

    KL, entropy bonus and rollout correction are the run's: settings ``kl``, ``train.entropy_coef`` and ``correction``.
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

    def mean(self, losses: Tensor, batch: LossBatch) -> Tensor:
        """This part's share of the global mean of per-token ``losses`` ``[B, T]``; the KL and entropy terms take it too.

        The default is the mean over tokens; an algorithm that reduces its policy loss in another way overrides it.
        """
        from evr1_core.api.tensors import aggregate

        counts = {"tokens": batch.global_tokens, "sequences": batch.global_sequences, "max_tokens": batch.max_tokens}
        return aggregate(losses, batch.mask, "token-mean", **counts)

    def contradictions(self, config: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """(dotted key, reason) of each setting that makes no sense with this algorithm. ``config``: the run's settings as plain
        nested mappings, e.g. ``config["kl"]["place"]``."""
        return ()
