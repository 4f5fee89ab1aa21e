"""Group statistics, losses and reductions that algorithms are made of. Imports torch; nothing else in ``evr1_core.api`` does.

``B`` responses, ``T`` response tokens; masks are bool ``[B, T]``. float64 inputs stay float64, half precision becomes float32.
"""

from evr1_core.api.filters import SPREAD
from evr1_core.api.tensors.correction import (
    CorrectionLevel,
    CorrectionMode,
    rollout_weights,
)
from evr1_core.api.tensors.groups import (
    LEVELS,
    Level,
    by_group,
    deviation,
    normalised,
    scores_of,
)
from evr1_core.api.tensors.kl import (
    KL_KINDS,
    KLController,
    KLKind,
    entropy_of,
    exact_entropy,
    full_kl,
    kl_kind_of,
    mean_kl,
    reward_with_kl,
    token_kl,
)
from evr1_core.api.tensors.losses import (
    cispo_losses,
    importance_weighted,
    ppo_losses,
    sequence_log_ratio,
    shaped_imitation,
    value_losses,
)
from evr1_core.api.tensors.reductions import (
    AGGREGATIONS,
    Aggregation,
    aggregate,
    at_least_float32,
    clamp20,
    last_token,
    masked_mean,
    outcome,
    place_on_last_token,
    spread_over_tokens,
    whiten,
)
from evr1_core.api.tensors.returns import (
    explained_variance,
    generalised_advantages,
    reward_to_go,
)
from evr1_core.api.tensors.terms import (
    training_loss,
    value_loss,
    without_truncated,
)

__all__ = [
    "AGGREGATIONS",
    "KL_KINDS",
    "LEVELS",
    "SPREAD",
    "Aggregation",
    "CorrectionLevel",
    "CorrectionMode",
    "KLController",
    "KLKind",
    "Level",
    "aggregate",
    "at_least_float32",
    "by_group",
    "cispo_losses",
    "clamp20",
    "deviation",
    "entropy_of",
    "exact_entropy",
    "explained_variance",
    "full_kl",
    "generalised_advantages",
    "importance_weighted",
    "kl_kind_of",
    "last_token",
    "masked_mean",
    "mean_kl",
    "normalised",
    "outcome",
    "place_on_last_token",
    "ppo_losses",
    "reward_to_go",
    "reward_with_kl",
    "rollout_weights",
    "scores_of",
    "sequence_log_ratio",
    "shaped_imitation",
    "spread_over_tokens",
    "token_kl",
    "training_loss",
    "value_loss",
    "value_losses",
    "whiten",
    "without_truncated",
]
