"""Group statistics, losses and reductions that algorithms are made of. Imports torch; nothing else in ``evr1_core.api`` does.

``B`` responses, ``T`` response tokens; masks are bool ``[B, T]``. float64 inputs stay float64, half precision becomes float32.
"""

from evr1_core.api.tensors.groups import SPREAD, by_group
from evr1_core.api.tensors.losses import ppo_losses
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

__all__ = [
    "AGGREGATIONS",
    "SPREAD",
    "Aggregation",
    "aggregate",
    "at_least_float32",
    "by_group",
    "clamp20",
    "last_token",
    "masked_mean",
    "outcome",
    "place_on_last_token",
    "ppo_losses",
    "spread_over_tokens",
    "whiten",
]
