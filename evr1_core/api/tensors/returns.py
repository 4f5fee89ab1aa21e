"""Credit of tokens along a response. Masked tokens, such as a tool's answer, are stepped over: credit passes through them."""

from __future__ import annotations

import torch
from torch import Tensor


def reward_to_go(token_rewards: Tensor, mask: Tensor, gamma: float = 1.0) -> Tensor:
    """``[B, T]``: discounted sum of the rewards from each valid token on; 0 outside the mask."""
    result = torch.zeros_like(token_rewards)
    following = torch.zeros_like(token_rewards[:, 0]) if token_rewards.shape[1] else token_rewards.sum(dim=1)
    for t in reversed(range(token_rewards.shape[1])):
        following = torch.where(mask[:, t], token_rewards[:, t] + gamma * following, following)
        result[:, t] = following * mask[:, t]
    return result


def generalised_advantages(
    token_rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float = 1.0, lam: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(advantages, returns), each ``[B, T]`` and 0 outside the mask (arXiv:1506.02438). Advantages are not whitened."""
    advantages = torch.zeros_like(values)
    credit = torch.zeros_like(values[:, 0]) if values.shape[1] else values.sum(dim=1)
    next_value = torch.zeros_like(credit)
    for t in reversed(range(values.shape[1])):
        valid = mask[:, t]
        delta = token_rewards[:, t] + gamma * next_value - values[:, t]
        credit = torch.where(valid, delta + gamma * lam * credit, credit)
        next_value = torch.where(valid, values[:, t], next_value)
        advantages[:, t] = credit * valid
    return advantages, (advantages + values) * mask


def explained_variance(returns: Tensor, values: Tensor, mask: Tensor) -> float:
    """``1 - Var(returns - values) / (Var(returns) + 1e-5)`` over the mask, ddof 1; NaN for fewer than two tokens."""
    wanted, guessed = returns[mask], values[mask]
    return float(1 - (wanted - guessed).var() / (wanted.var() + 1e-5)) if len(wanted) >= 2 else float("nan")
