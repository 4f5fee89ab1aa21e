"""Rollouts from the live Transformers model, in the trainer's process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import ModelFamily, Request, Rollout, RolloutEngine
from evr1_plugins.engines._decoding import Decoding, decoding
from evr1_plugins.engines._prefill import prefill
from evr1_plugins.engines._sampling import Draws, end_ids, log_probabilities


@define(kw_only=True)
class HuggingFaceEngine(RolloutEngine):
    """Decodes with the policy itself: a prompt is prefilled once for its n responses; rows of many prompts are decoded together.

    With the trainer's module the weights are always the current ones; without it, the engine has a model of its own, which takes
    the policy's weights. A request with a seed gives the same draws whatever else is in the batch.
    """

    api = 1
    in_process = True

    prompts_per_batch: int = field(default=32, validator=validators.gt(0), metadata={"help": "prompts decoded together"})
    prefill_tokens: int = field(
        default=16384, validator=validators.gt(0), metadata={"help": "tokens of prompts computed in one pass, padding included"}
    )
    _module: Any = field(default=None, init=False)
    _shared: bool = field(default=False, init=False)
    _family: Any = field(default=None, init=False)
    _processor: Any = field(default=None, init=False)

    @property
    def appetite(self) -> int:
        return self.prompts_per_batch

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        self._shared = module is not None
        self._module = module if module is not None else family.load(model_path).eval()
        self._family, self._processor = family, processor

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        if self._shared:
            return
        parameters = dict(self._module.named_parameters())
        for name, value in weights:
            parameters[name].data = value.detach().clone()
        self._module.to(next(self._module.parameters()).device)  # buffers follow

    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        training = self._module.training
        self._module.eval()
        try:
            with torch.inference_mode():
                size = self.prompts_per_batch
                batches = [self._decode(requests[i : i + size]) for i in range(0, len(requests), size)]
        finally:
            self._module.train(training)
        return [group for batch in batches for group in batch]

    def _decode(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        encoded = [self._family.encode(self._processor, request.text, request.clips) for request in requests]
        draws = Draws([request.sampling for request in requests])
        eos = end_ids(self._module.generation_config, self._processor.tokenizer)
        prompts = prefill(self._family, self._module, encoded, self.prefill_tokens)
        with decoding(self._module, prompts, draws.rows_per_request) as state:
            self._write(draws, prompts.hidden, state, eos)
        return draws.rollouts(self._processor.tokenizer, eos)

    def _write(self, draws: Draws, prompts: Tensor, state: Decoding, eos: Sequence[int]) -> None:
        device = prompts.device
        hidden = prompts.repeat_interleave(torch.tensor(draws.rows_per_request, device=device), dim=0)
        banned = sorted(self._family.banned_ids(self._processor))
        head = self._family.head(self._module)
        ends, limits, temperatures = (x.to(device) for x in (torch.tensor(eos), draws.limits, draws.temperatures))
        alive = torch.arange(draws.num_rows, device=device)
        for step in range(draws.max_tokens):
            logprobs = log_probabilities(head(hidden), temperatures[alive], banned)
            tokens = draws.take(step, alive, logprobs)
            going = ~torch.isin(tokens, ends) & (limits[alive] > step + 1)
            left = int(going.sum())
            if left == 0:
                break
            if left < len(alive):
                state.keep(going)
                alive, tokens = alive[going], tokens[going]
            hidden = state.step(self._family, self._module, tokens)
