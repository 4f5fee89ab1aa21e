"""Log-probabilities and entropies without all logits: some tokens at a time, computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from evr1_core.api.tensors import at_least_float32

LOW = -1e30  # stands for -inf: its exponential is 0, and 0 times it is 0


@frozen
class Distribution:
    """How logits ``[N, V]`` become the distribution that is sampled from; ``chunk``: logits held at a time."""

    temperature: float
    banned: Tensor  # int64
    chunk: int

    def logits(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """float32 at least ``[n, V]``, over the temperature, of all tokens that may be sampled."""
        logits = at_least_float32(torch.nn.functional.linear(hidden, weight, bias))
        return logits.div_(self.temperature).index_fill_(1, self.banned, LOW)

    def parts(self, tokens: int, vocabulary: int) -> Iterator[slice]:
        """Tokens whose logits are held together."""
        size = max(1, self.chunk // vocabulary)
        return (slice(first, min(first + size, tokens)) for first in range(0, tokens, size))


class ChunkedLogprobs(torch.autograd.Function):
    """(log-probability, entropy), each float32 at least ``[N]``, of ``targets`` under a linear head.

    With p the probabilities, the gradient of log p_t by a logit j is [j = t] - p_j, that of the entropy H is -p_j (log p_j + H).
    The gradients of weight and bias are added up in place and in float32: one copy, whatever the number of parts.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, how: Distribution
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden.dtype, torch.float32)
        chosen, entropy, normaliser = (torch.empty(len(hidden), dtype=wide, device=hidden.device) for _ in range(3))
        for part in how.parts(len(hidden), len(weight)):
            logits = how.logits(hidden[part], weight, bias)
            top = logits.amax(dim=1)
            picked = logits.gather(1, targets[part].unsqueeze(1)).squeeze(1) - top
            logits.sub_(top.unsqueeze(1))
            exponentials = logits.exp()
            total = exponentials.sum(dim=1)
            log_total = total.log()
            chosen[part] = picked - log_total
            entropy[part] = log_total - exponentials.mul_(logits).sum(dim=1) / total
            normaliser[part] = top + log_total
        ctx.how = how
        ctx.save_for_backward(hidden, weight, bias, targets, normaliser, entropy)
        ctx.set_materialize_grads(False)
        return chosen, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, normaliser, entropy = ctx.saved_tensors
        of_chosen, of_entropy = gradients
        wanted = ctx.needs_input_grad
        by_hidden = torch.empty_like(hidden) if wanted[0] else None
        by_weight = torch.zeros(weight.shape, dtype=normaliser.dtype, device=weight.device) if wanted[1] else None
        by_bias = torch.zeros(len(weight), dtype=normaliser.dtype, device=weight.device) if wanted[2] else None
        for part in ctx.how.parts(len(hidden), len(weight)):
            logprobs = ctx.how.logits(hidden[part], weight, bias).sub_(normaliser[part].unsqueeze(1))
            inner = logprobs.exp()  # probabilities, on the way to the gradient by the logits
            factors = logprobs.zero_() if of_entropy is None else logprobs.add_(entropy[part].unsqueeze(1))
            if of_entropy is not None:
                factors.mul_(of_entropy[part].unsqueeze(1))
            if of_chosen is not None:
                factors.add_(of_chosen[part].unsqueeze(1))
            inner.mul_(factors).neg_()
            if of_chosen is not None:
                inner.scatter_add_(1, targets[part].unsqueeze(1), of_chosen[part].unsqueeze(1))
            inner.div_(ctx.how.temperature)
            if by_bias is not None:
                by_bias += inner.sum(dim=0)
            low = inner.to(weight.dtype)
            if by_hidden is not None:
                by_hidden[part] = low @ weight
            if by_weight is not None:
                by_weight.addmm_(low.T.to(by_weight.dtype), hidden[part].to(by_weight.dtype))
        return (
            by_hidden,
            None if by_weight is None else by_weight.to(weight.dtype),
            None if by_bias is None or bias is None else by_bias.to(bias.dtype),
            None,
            None,
        )
