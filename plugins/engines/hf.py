"""Rollouts from the live Transformers model, in the trainer's process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import ModelError, ModelFamily, Request, Rollout, RolloutEngine
from evr1_plugins.engines._decoding import Decoding, Forked, Shared, prefill
from evr1_plugins.engines._sampling import Draws, end_ids, log_probabilities


@define(kw_only=True)
class HuggingFaceEngine(RolloutEngine):
    """Decodes with the policy itself: a prompt is prefilled once for its n responses; rows of many prompts are decoded together.

    With the trainer's module the weights are always the current ones; without it, the engine has a model of its own, which takes
    the policy's weights. A request with a seed gives the same draws whatever else is in the batch.
    """

    api = 1

    prompts_per_batch: int = field(default=32, validator=validators.gt(0), metadata={"help": "prompts decoded together"})
    _module: Any = field(default=None, init=False)
    _shared: bool = field(default=False, init=False)
    _family: Any = field(default=None, init=False)
    _processor: Any = field(default=None, init=False)

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
        prompts = prefill(self._family, self._module, encoded, _new_cache(self._module))
        way = Shared if self._family.shared_prefix else Forked
        state: Decoding = way(prompts, draws.rows_per_request)
        hidden = prompts.hidden.repeat_interleave(torch.tensor(draws.rows_per_request, device=prompts.hidden.device), dim=0)
        eos = end_ids(self._module, self._processor.tokenizer)
        banned = sorted(self._family.banned_ids(self._processor))
        head = self._family.head(self._module)
        alive = torch.arange(draws.num_rows, device=hidden.device)
        for step in range(draws.max_tokens):
            logprobs = log_probabilities(head(hidden), draws.temperatures[alive.cpu()].to(hidden.device), banned)
            tokens = draws.take(step, alive, logprobs)
            ended = torch.isin(tokens, torch.tensor(eos, device=tokens.device)) | (
                draws.limits[alive.cpu()].to(tokens.device) <= step + 1
            )
            if bool(ended.all()):
                break
            if bool(ended.any()):
                state.keep(~ended)
                alive, tokens = alive[~ended], tokens[~ended]
            hidden = state.step(self._family, self._module, tokens)
        return draws.rollouts(self._processor.tokenizer, eos)


def _new_cache(module: nn.Module) -> Any:
    from transformers import DynamicCache

    config: Any = module.config
    if not hasattr(config, "get_text_config"):
        raise ModelError(f"{type(module).__name__} is not a Transformers model")
    return DynamicCache(config=config.get_text_config())
