"""Losses of tokens, before they are averaged. ``log_ratio``: new minus old log-probability, clamped by the caller."""

from __future__ import annotations

import torch
from torch import Tensor

from evr1_core.api.tensors.reductions import clamp20

Losses = tuple[Tensor, Tensor, Tensor]  # the loss, where the upper clip binds, where the dual clip binds; all [B, T]


def ppo_losses(log_ratio: Tensor, advantages: Tensor, *, low: float, high: float, dual: float | None) -> Losses:
    """Clipped surrogate (arXiv:1707.06347) with separate bounds (arXiv:2503.14476) and dual clip (arXiv:1912.09729).

    Returns the loss per token, where the upper clip binds, and where the dual clip binds; all ``[B, T]``.
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


def sequence_log_ratio(log_ratio: Tensor, mask: Tensor, *, per_token: bool = False) -> Tensor:
    """``[B, T]``: log of the geometric mean of a response's ratios, the same on all its tokens (arXiv:2507.18071).

    The gradient reaches every token of the response. ``per_token``: the same value, but each token's gradient is its own, so that
    advantages may differ within a response.
    """
    mean = (log_ratio * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    mean = clamp20(mean)
    return mean.detach() + log_ratio - log_ratio.detach() if per_token else mean.expand_as(log_ratio)


def cispo_losses(logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, *, low: float | None, high: float) -> Losses:
    """REINFORCE weighted by a clipped ratio without gradient (arXiv:2506.13585): no token's gradient is lost.

    ``low`` None: no lower bound. Returns what ``ppo_losses`` does; there is no dual clip.
    """
    ratio = log_ratio.detach().exp()
    clipped = ratio.clamp(0.0 if low is None else 1 - low, 1 + high)
    binds = ratio != clipped
    return -clipped * advantages * logprobs, binds, torch.zeros_like(binds)


def shaped_imitation(logprobs: Tensor, advantages: Tensor, *, gamma: float) -> Tensor:
    """``-A p / (p + gamma)`` ``[B, T]`` for stored trajectories (arXiv:2504.14945): the behaviour's probability is taken as 1.

    The gradient is largest where p is gamma, and fades for tokens that the policy is sure of or finds hopeless.
    """
    probability = logprobs.exp()
    return -advantages * probability / (probability + gamma)


def importance_weighted(logprobs: Tensor, behaviour: Tensor, advantages: Tensor, *, bound: float) -> Tensor:
    """``-A min(p / behaviour, bound)`` ``[B, T]`` for stored trajectories with recorded log-probabilities; no gradient above
    ``bound``."""
    return -advantages * clamp20(logprobs - behaviour).exp().clamp(max=bound)


def value_losses(new: Tensor, old: Tensor, returns: Tensor, *, clip: float) -> tuple[Tensor, Tensor]:
    """(half the larger squared error of the value and of the value clipped to ``old`` +- ``clip``, where the clip binds), each
    ``[B, T]`` (arXiv:1707.06347)."""
    plain = (new - returns) ** 2
    clipped = (torch.maximum(torch.minimum(new, old + clip), old - clip) - returns) ** 2
    return 0.5 * torch.maximum(plain, clipped), clipped > plain
