"""The distance to a reference model: estimators of tokens, exact values, the penalty on rewards, and its controller."""

from __future__ import annotations

from typing import Literal

import torch
from attrs import define
from torch import Tensor

from evr1_core.api.tensors.reductions import at_least_float32, clamp20

KLKind = Literal["k1", "abs", "k2", "k3", "k1+", "k3+"]
KL_KINDS: tuple[KLKind, ...] = ("k1", "abs", "k2", "k3", "k1+", "k3+")
_OTHER_NAMES: dict[str, KLKind] = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}
_BY_PLACE: dict[str, KLKind] = {"loss": "k3+", "reward": "k1"}
K3_BOUND = 10.0


def kl_kind_of(place: str, kind: str) -> KLKind:
    """The estimator that the settings ``kl.place`` and ``kl.kind`` mean. Raises ValueError for one that needs logits."""
    kind = _BY_PLACE[place] if kind == "auto" else _OTHER_NAMES.get(kind, kind)
    for known in KL_KINDS:
        if kind == known:
            return known
    raise ValueError(f"kl kind {kind!r} cannot be had from log-probabilities of tokens; known: {', '.join(KL_KINDS)}")


def token_kl(logprobs: Tensor, reference: Tensor, kind: KLKind, old: Tensor | None = None) -> Tensor:
    """An estimate of KL(policy || reference) at each token, of any shape, with a gradient to ``logprobs``.

    With ``x = logprobs - reference``: k1 is x, abs its size, k2 is x^2 / 2, k3 is e^-x + x - 1, at most 10. As a loss, on samples
    of the policy, k1 has no gradient on average, k2 that of the KL, and k3 that of the KL the other way round. ``k1+`` and ``k3+``
    have the value of k1 and k3 and the gradient ``r x``, that of the KL also off-policy; r is the ratio to ``old`` (1 without).
    """
    logprobs, reference = at_least_float32(logprobs), at_least_float32(reference)
    x = logprobs - reference
    if kind == "k1":
        return x
    if kind == "abs":
        return x.abs()
    if kind == "k2":
        return x**2 / 2
    if kind == "k3":
        y = clamp20(-x)
        return (y.exp() - y - 1).clamp(max=K3_BOUND)
    base: KLKind = "k1" if kind == "k1+" else "k3"
    x = x.detach()
    slope = x if old is None else x * clamp20(logprobs.detach() - at_least_float32(old)).exp()
    return token_kl(logprobs, reference, base).detach() + slope * (logprobs - logprobs.detach())


def full_kl(logits: Tensor, reference_logits: Tensor) -> Tensor:
    """Exact KL(policy || reference) from logits ``[..., V]``; banned ids are -inf in both."""
    logprobs, reference = at_least_float32(logits).log_softmax(-1), at_least_float32(reference_logits).log_softmax(-1)
    banned = logprobs == float("-inf")
    return (logprobs.exp() * (logprobs.masked_fill(banned, 0.0) - reference.masked_fill(banned, 0.0))).sum(-1)


def entropy_of(logprobs: Tensor) -> Tensor:
    """Exact entropy of distributions given by their log-probabilities ``[..., V]``, of which some may be -inf."""
    return -(logprobs.exp() * logprobs.masked_fill(logprobs == float("-inf"), 0.0)).sum(dim=-1)


def exact_entropy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Exact entropy of the distribution that is sampled from, given its logits ``[..., V]``; differentiable."""
    return entropy_of((at_least_float32(logits) / temperature).log_softmax(-1))


def mean_kl(kl: Tensor, mask: Tensor) -> Tensor:
    """Mean over the rows with tokens of each row's mean; 0 without any. A scalar."""
    lengths = mask.sum(dim=1)
    means = torch.where(mask, kl, torch.zeros_like(kl)).sum(dim=1) / lengths.clamp(min=1)
    return means.sum() / (lengths > 0).sum().clamp(min=1)


def reward_with_kl(
    token_scores: Tensor, old: Tensor, reference: Tensor, mask: Tensor, *, coef: float, kind: KLKind = "k1"
) -> tuple[Tensor, Tensor]:
    """(rewards of tokens ``[B, T]`` less ``coef`` times the KL of the sampling policy to the reference, ``mean_kl``)."""
    kl = token_kl(old.detach(), reference.detach(), kind)
    rewards = torch.where(mask, token_scores - coef * kl, torch.zeros_like(token_scores))
    return rewards, mean_kl(kl, mask)


@define(kw_only=True)
class KLController:
    """The factor of the penalty: fixed, or moved so that the KL comes to ``target`` (arXiv:1909.08593).

    ``target`` is a mean over tokens; the original rule looks at sums over responses, whose targets do not carry over.
    """

    coef: float
    target: float | None = None
    horizon: float = 10_000.0

    def update(self, kl: float, sequences: int) -> None:
        """Takes the ``mean_kl`` of a batch of so many responses."""
        if self.target is not None:
            error = min(0.2, max(-0.2, kl / self.target - 1))
            self.coef *= 1 + error * sequences / self.horizon
