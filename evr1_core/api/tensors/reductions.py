"""Masked statistics, and the means of losses."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"]
AGGREGATIONS: tuple[Aggregation, ...] = ("token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")


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
