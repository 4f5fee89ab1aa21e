"""Drawing tokens: one stream of random numbers a request, so that a draw does not depend on what else is in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from evr1_core.api import Rollout, Sampling


def end_ids(generation_config: Any, tokenizer: Any) -> list[int]:
    """All ids that end a response: the model's list, or the tokenizer's one."""
    named = generation_config.eos_token_id if generation_config.eos_token_id is not None else tokenizer.eos_token_id
    return list(named) if isinstance(named, list | tuple) else [named]


def log_probabilities(logits: Tensor, temperatures: Tensor, banned: Sequence[int]) -> Tensor:
    """float32 ``[R, V]``: after banning and temperature. A greedy row (temperature 0) is scored at temperature 1."""
    logits = logits.float()
    logits[:, list(banned)] = float("-inf")
    return torch.log_softmax(logits / torch.where(temperatures > 0, temperatures, 1.0).unsqueeze(1), dim=-1)


def truncate(logprobs: Tensor, top_k: int, top_p: float) -> Tensor:
    """One row's log-probabilities with all but the top k, or the smallest set of mass p, at -inf, and renormalised."""
    if top_k > 0:
        floor = logprobs.topk(min(top_k, len(logprobs))).values[-1]
        logprobs = torch.where(logprobs < floor, float("-inf"), logprobs)
    if top_p < 1:
        ordered, order = logprobs.softmax(dim=-1).sort(descending=True)
        outside = ordered.cumsum(0) - ordered >= top_p  # the first token that reaches p stays in
        logprobs = logprobs.index_fill(0, order[outside], float("-inf"))
    return torch.log_softmax(logprobs, dim=-1)


class Draws:
    """The responses of a batch of requests while they grow, a row each."""

    def __init__(self, requests: Sequence[Sampling]) -> None:
        self.rows_per_request = [request.n for request in requests]
        self._rows = [request for request in requests for _ in range(request.n)]
        self.num_rows = len(self._rows)
        self.limits = torch.tensor([row.max_tokens for row in self._rows])
        self.max_tokens = int(self.limits.max())
        self.temperatures = torch.tensor([row.temperature for row in self._rows])
        self._truncated = [i for i, row in enumerate(self._rows) if row.top_k > 0 or row.top_p < 1]
        self._noise = torch.cat([_noise(request, self.max_tokens) for request in requests])
        self.tokens: list[list[int]] = [[] for _ in self._rows]
        self.logprobs: list[list[float]] = [[] for _ in self._rows]

    def take(self, step: int, alive: Tensor, logprobs: Tensor) -> Tensor:
        """The next token of each living row, drawn from ``logprobs`` ``[R, V]`` and written down."""
        rows = alive.tolist()
        if self._truncated:
            places = {row: place for place, row in enumerate(rows)}
            for row in self._truncated:
                if row in places:
                    logprobs[places[row]] = truncate(logprobs[places[row]], self._rows[row].top_k, self._rows[row].top_p)
        sums = logprobs.double().exp().cumsum(dim=-1)
        points = self._noise[rows, step].to(sums.device).unsqueeze(1) * sums[:, -1:]
        drawn = torch.searchsorted(sums, points, right=True).squeeze(1).clamp(max=logprobs.shape[1] - 1)
        greedy = (self.temperatures[rows] == 0).to(drawn.device)
        tokens = torch.where(greedy, logprobs.argmax(dim=-1), drawn)
        chosen = logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1)
        for row, token, logprob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
            self.tokens[row].append(token)
            self.logprobs[row].append(logprob)
        return tokens

    def rollouts(self, tokenizer: Any, eos: Sequence[int]) -> list[list[Rollout]]:
        """The finished responses, by request. The text leaves the end token out."""
        rows = iter(zip(self.tokens, self.logprobs, strict=True))
        return [[rollout(tokenizer, eos, *next(rows)) for _ in range(n)] for n in self.rows_per_request]


def rollout(tokenizer: Any, eos: Sequence[int], tokens: list[int], logprobs: list[float]) -> Rollout:
    """A finished response. The text leaves the end token out."""
    ended = tokens[-1] in eos
    text = tokenizer.decode(tokens[:-1] if ended else tokens, skip_special_tokens=False)
    return Rollout(text=text, token_ids=tuple(tokens), logprobs=tuple(logprobs), finish="stop" if ended else "length")


def _noise(request: Sampling, steps: int) -> Tensor:
    """Uniform numbers ``[n, steps]``. Each response has a stream of its own, so that the step limit does not shift its draws."""
    generator = torch.Generator()
    if request.seed is None:
        generator.seed()
    else:
        generator.manual_seed(request.seed)
    seeds = torch.randint(0, 2**62, (request.n,), generator=generator).tolist()
    return torch.stack([torch.rand(steps, generator=generator.manual_seed(seed), dtype=torch.float64) for seed in seeds])
