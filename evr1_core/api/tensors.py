"""Group statistics, losses and reductions that algorithms are made of. Imports torch; nothing else in ``evr1_core.api`` does.

``B`` responses, ``T`` response tokens; masks are bool ``[B, T]``. float64 inputs stay float64, half precision becomes float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]
AGGREGATIONS: tuple[Aggregation, ...] = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")
SPREAD = 1e-6  # a group whose values differ by no more than this has no signal: its residue is rounding


def at_least_float32(x: Tensor) -> Tensor:
    """``x`` in float32 when it is half precision or whole numbers, unchanged otherwise."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def clamp20(x: Tensor) -> Tensor:
    """``x`` clipped to [-20, 20], so that its exponential stays finite."""
    return x.clamp(-20.0, 20.0)


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``x`` over ``mask``; 0 when nothing is masked in. A scalar."""
    count = mask.sum()
    return (x * mask).sum() / count if count else x.new_zeros(())


def whiten(x: Tensor, mask: Tensor) -> Tensor:
    """``x`` with mean 0 and variance 1 (ddof 1) over ``mask``, 0 outside; a single value becomes 0."""
    mean = masked_mean(x, mask)
    count = mask.sum()
    variance = (mask * (x - mean) ** 2).sum() / (count - 1) if count > 1 else x.new_zeros(())
    return mask * (x - mean) / torch.sqrt(variance + 1e-8)


def last_token(mask: Tensor) -> Tensor:
    """int64 ``[B]``: position of the last True of each row; -1 for an empty row."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (
        torch.where(mask, positions, -1).max(dim=1).values
        if mask.shape[1]
        else mask.new_full((mask.shape[0],), -1, dtype=torch.long)
    )


def place_on_last_token(scores: Tensor, mask: Tensor) -> Tensor:
    """``[B, T]``: each row's score on its last valid token, 0 elsewhere; an empty row stores nothing."""
    placed = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    last = last_token(mask)
    rows = torch.nonzero(last >= 0).squeeze(1)
    placed[rows, last[rows]] = scores[rows]
    return placed


def spread_over_tokens(values: Tensor, mask: Tensor) -> Tensor:
    """``[B, T]``: each row's value on all its valid tokens, 0 elsewhere."""
    return values.unsqueeze(1) * mask


def outcome(token_rewards: Tensor, mask: Tensor) -> Tensor:
    """``[B]``: sum of the rewards on valid tokens."""
    return (token_rewards * mask).sum(dim=1)


def by_group(scores: Tensor, group_ids: Tensor, counted: Tensor, credit: Callable[[Tensor], Tensor]) -> Tensor:
    """``credit`` applied to the scores of each group, in float64 and in place of the rows; rows not ``counted`` (bool ``[B]``) take
    no part and get 0. A group of one row, or without spread, gets 0: in low precision its residue is noise that a division would
    blow up."""
    credits = torch.zeros_like(scores, dtype=torch.float64)
    for group in torch.unique(group_ids):
        rows = torch.nonzero((group_ids == group) & counted).squeeze(1)
        values = scores[rows].double()
        if len(rows) >= 2 and values.max() - values.min() > SPREAD:
            credits[rows] = credit(values)
    return credits.to(at_least_float32(scores).dtype)


def aggregate(losses: Tensor, mask: Tensor, mode: Aggregation, *, tokens: int, sequences: int, max_tokens: int) -> Tensor:
    """This part's share of the global mean of per-token ``losses`` ``[B, T]``. A scalar.

    ``tokens`` and ``sequences`` count the whole mini-batch over all ranks; ``max_tokens`` is the configured response limit. Shares
    of the parts of a mini-batch add up to its loss, however it was split.
    """
    if mode not in AGGREGATIONS:
        raise ValueError(f"unknown aggregation {mode!r}; known: {', '.join(AGGREGATIONS)}")
    masked = torch.where(mask, losses, torch.zeros_like(losses))  # not a product: the loss of a masked token may be infinite
    if mode == "token-mean":
        return masked.sum() / max(tokens, 1)
    if mode == "seq-mean-token-mean":
        return (masked.sum(dim=1) / mask.sum(dim=1).clamp(min=1)).sum() / max(sequences, 1)
    total = masked.sum() / max(sequences, 1)
    return total / max_tokens if mode == "seq-mean-token-sum-norm" else total


def ppo_losses(
    log_ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Clipped surrogate (arXiv:1707.06347) with separate bounds (arXiv:2503.14476) and dual clip (arXiv:1912.09729).

    Returns the loss per token, where the upper clip binds, and where the dual clip binds; all ``[B, T]``. ``log_ratio`` is clamped
    by the caller.
    """
    ratio = log_ratio.exp()
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - low, 1 + high)
    losses = torch.maximum(plain, clipped)
    binds = clipped > plain
    if dual is None:
        return losses, binds, torch.zeros_like(binds)
    bound = -advantages * dual
    dual_binds = (advantages < 0) & (losses > bound)
    return torch.where(advantages < 0, torch.minimum(losses, bound), losses), binds, dual_binds
