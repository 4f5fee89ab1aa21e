"""Log-probabilities and entropies of given tokens, under the distribution that they were sampled from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evr1_core.api.tensors import at_least_float32, entropy_of
from evr1_core.train.chunked import ChunkedLogprobs, Distribution

CHUNK = 2**24  # logits held at a time: 64 MB in float32


def token_logprobs(
    hidden: Tensor, head: nn.Module, targets: Tensor, *, temperature: float, banned: Sequence[int], chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """(log-probability, entropy), each float32 ``[N]``, of ``targets`` ``[N]`` after the hidden states ``[N, D]``.

    Logits are taken over ``temperature``, in float32 at least, with ``banned`` ids at -inf, as in the sampler. At most ``chunk`` of
    them are held at a time under a linear head; another kind of head, such as one with adapters, has them all at once.
    """
    ids = torch.tensor(banned, dtype=torch.long, device=hidden.device)
    if type(head) is nn.Linear and len(hidden) * head.out_features > chunk:
        how = Distribution(temperature, ids, chunk)
        chosen, entropy = ChunkedLogprobs.apply(hidden, head.weight, head.bias, targets, how)  # type: ignore[no-untyped-call]
        return chosen, entropy
    logits = at_least_float32(head(hidden)).index_fill(1, ids, float("-inf")) / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    return logprobs.gather(1, targets.unsqueeze(1)).squeeze(1), entropy_of(logprobs)
