"""The whole loss of a part of a mini-batch: the algorithm's, the distance to a reference, the entropy bonus; and a critic's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evr1_core.api.algorithms import LossResult
from evr1_core.api.tensors.kl import KLKind, token_kl
from evr1_core.api.tensors.losses import value_losses
from evr1_core.api.tensors.reductions import aggregate, at_least_float32

if TYPE_CHECKING:
    from evr1_core.api.algorithms import Algorithm, LossBatch


def training_loss(
    algorithm: Algorithm, batch: LossBatch, *, kl_kind: KLKind | None = None, kl_coef: float = 0.0, entropy_coef: float = 0.0
) -> LossResult:
    """The algorithm's loss, plus ``kl_coef`` times the KL, less ``entropy_coef`` times the entropy; all three are means of the same
    kind over the same counts.

    ``kl_kind`` None: no KL in the loss; else ``batch.reference_logprobs`` are needed. An entropy bonus needs ``batch.entropy`` with
    its gradient. Adds the terms to ``sums`` and ``actor/entropy`` (or, without entropies, ``actor/neg_logp``) to the metrics.
    """
    result = algorithm.policy_loss(batch)
    loss, sums, metrics = result.loss, {"actor/pg_loss": result.loss.detach(), **result.sums}, dict(result.metrics)
    own = batch.mask & ~batch.offline.unsqueeze(1)
    if kl_kind is not None:
        kl = _kl(batch, kl_kind)
        term = algorithm.mean(kl, batch)
        loss = loss + kl_coef * term
        sums["actor/kl_loss"] = term.detach()
    if entropy_coef:
        if batch.entropy is None:
            raise ValueError("an entropy bonus needs LossBatch.entropy")
        term = algorithm.mean(_only(batch.entropy, batch.mask), batch)
        loss = loss - entropy_coef * term
        sums["actor/entropy_loss"] = term.detach()
    name, values = ("actor/neg_logp", -batch.logprobs) if batch.entropy is None else ("actor/entropy", batch.entropy)
    metrics[name] = (_only(values.detach(), own).sum(), own.sum())
    return LossResult(loss=loss, metrics=metrics, maxima=result.maxima, sums=sums)


def _kl(batch: LossBatch, kind: KLKind) -> Tensor:
    if batch.reference_logprobs is None:
        raise ValueError("a KL term needs LossBatch.reference_logprobs")
    mask = batch.mask
    return token_kl(_only(batch.logprobs, mask), _only(batch.reference_logprobs, mask), kind, _only(batch.old_logprobs, mask))


def _only(values: Tensor, mask: Tensor) -> Tensor:
    """The values inside the mask, 0 outside: there, they may be infinite, and 0 times infinity is no gradient."""
    return torch.where(mask, values, torch.zeros_like(values))


def value_loss(new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, *, clip: float, tokens: int) -> LossResult:
    """A critic's loss: this part's share of the mean over all ``tokens`` of the mini-batch. Values and returns are ``[B, T]``;
    ``new`` carries the gradient."""
    losses, binds = value_losses(at_least_float32(new), old, returns, clip=clip)
    loss = aggregate(losses, mask, "token-mean", tokens=tokens, sequences=1, max_tokens=1)
    return LossResult(
        loss=loss, metrics={"critic/vf_clipfrac": ((binds & mask).sum(), mask.sum())}, sums={"critic/vf_loss": loss.detach()}
    )


def without_truncated(mask: Tensor, truncated: Tensor) -> Tensor:
    """The mask of the loss when responses that were cut off (bool ``[B]``) are not trained on; statistics keep the whole mask."""
    return mask & ~truncated.unsqueeze(1)
