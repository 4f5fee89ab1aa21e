"""Before the first update of a run: a prompt computed once for its responses says what separate rows say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from attrs import evolve, frozen
from torch import Tensor

from evr1_core.api import ModelError
from evr1_core.rollout.groups import Group

RESPONSES, TOKENS = 2, 32  # of a group that are looked at: enough for one response to see another, and little work
TOLERANCES = {torch.float64: (1e-8, 1e-6), torch.float32: (1e-3, 1e-2)}  # log-probs, root mean square; gradient norm, relative
LOW = (0.1, 0.1)  # of types below float32: rounding depends on how rows are cut


@frozen(kw_only=True)
class Looked:
    """What one way to compute says: ``logprobs`` ``[N]`` of the looked-at tokens, and the norm of the gradient."""

    logprobs: Tensor
    norm: float


def excerpt(groups: Sequence[Group]) -> list[Group]:
    """The start of two responses of two groups at most: those with media first, among them those with the shortest prompts."""
    ranked = sorted(groups, key=lambda group: (group.prompt.encoded.grid_thw is None, group.prompt.num_tokens))
    return [
        evolve(group, responses=[evolve(each, token_ids=each.token_ids[:TOKENS]) for each in group.responses[:RESPONSES]])
        for group in ranked[:2]
    ]


def weighed(logprobs: Tensor) -> Tensor:
    """A loss of log-probs ``[B, T]`` in which responses do not cancel out."""
    factors = torch.linspace(1, -0.5, len(logprobs), dtype=logprobs.dtype, device=logprobs.device)
    return (logprobs.sum(dim=1) * factors).sum()


def distance(shared: Looked, separate: Looked) -> tuple[float, float]:
    """(root mean square of what log-probs are apart, relative difference of the norms); 0 where separate rows are no numbers
    either: that is no fault of sharing."""
    apart = (shared.logprobs - separate.logprobs).double()
    square = float((apart**2).mean()) if len(apart) and bool(separate.logprobs.isfinite().all()) else 0.0
    norm = abs(shared.norm - separate.norm) / max(separate.norm, 1e-12) if math.isfinite(separate.norm) else 0.0
    return math.sqrt(square), norm


def refuse_unequal(distances: Sequence[tuple[float, float]], dtype: torch.dtype, uids: list[str]) -> None:
    """Raises ModelError where any of the ``distances`` is more than the rounding of ``dtype``."""
    allowed = TOLERANCES.get(dtype, LOW)
    for found in distances:
        if all(value <= limit for value, limit in zip(found, allowed, strict=True)):
            continue
        raise ModelError(
            f"train.share_prefix: prompts computed once for all their responses do not say what separate rows say: on {uids}, "
            f"log-probabilities are {found[0]:.2g} apart (root mean square; at most {allowed[0]:g} in {dtype}), gradient norms "
            f"{found[1]:.2g} of their size (at most {allowed[1]:g}); nothing was trained. Set train.share_prefix: false, and "
            "report the model: its attention does not do what its family says (shared_prefix)"
        )
