"""Log-probabilities and entropies of given tokens, under the distribution that they were sampled from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evr1_core.api.tensors import entropy_of


def token_logprobs(
    hidden: Tensor, head: nn.Module, targets: Tensor, *, temperature: float, banned: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """(log-probability, entropy), each float32 ``[N]``, of ``targets`` ``[N]`` after the hidden states ``[N, D]``.

    Logits are taken over ``temperature``, in float32 at least, with ``banned`` ids at -inf, as in the sampler.
    """
    logits = head(hidden)
    if logits.dtype not in (torch.float32, torch.float64):
        logits = logits.float()
    logits = logits.index_fill(1, torch.tensor(banned, dtype=torch.long, device=logits.device), float("-inf")) / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    return logprobs.gather(1, targets.unsqueeze(1)).squeeze(1), entropy_of(logprobs)
