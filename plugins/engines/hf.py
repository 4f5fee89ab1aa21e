"""Rollouts from the live Transformers model, in the trainer's process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import Encoded, ModelBatch, ModelError, ModelFamily, Request, Rollout, RolloutEngine
from evr1_plugins.engines._sampling import Draws, end_ids, log_probabilities


@define(kw_only=True)
class HuggingFaceEngine(RolloutEngine):
    """Decodes with the policy itself: a prompt is prefilled once for its n responses; rows of many prompts are decoded together.

    The weights are always the current ones. A request with a seed gives the same draws whatever else is in the batch.
    """

    api = 1

    prompts_per_batch: int = field(default=32, validator=validators.gt(0), metadata={"help": "prompts decoded together"})
    _module: Any = field(default=None, init=False)
    _family: Any = field(default=None, init=False)
    _processor: Any = field(default=None, init=False)

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        self._module = module if module is not None else family.load(model_path).eval()
        self._family, self._processor = family, processor

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
        hidden, state = self._prefill(encoded, draws.rows_per_request)
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

    def _prefill(self, encoded: Sequence[Encoded], rows: Sequence[int]) -> tuple[Tensor, _State]:
        """Hidden state behind every prompt, a row for each of its responses, and the state to go on from."""
        device = next(self._module.parameters()).device
        length = max(len(item.input_ids) for item in encoded)
        lengths = torch.tensor([len(item.input_ids) for item in encoded])
        positions = [self._family.position_ids(item) for item in encoded]
        batch = ModelBatch(
            input_ids=torch.stack([_pad(item.input_ids, length) for item in encoded]).to(device),
            position_ids=torch.stack([_pad(position, length) for position in positions], dim=1).to(device),
            token_kind=torch.stack([_pad(item.token_kind, length) for item in encoded]).to(device),
            attention_mask=_causal(lengths, length).to(device),
            cache=_new_cache(self._module),
        )
        hidden = self._family.forward(self._module, batch, self._vision(encoded, device))
        last = hidden[torch.arange(len(encoded)), (lengths - 1).to(device)]
        repeats = torch.tensor(rows, device=device)
        batch.cache.batch_select_indices(torch.repeat_interleave(torch.arange(len(encoded), device=device), repeats))
        seen = torch.arange(length) < lengths.unsqueeze(1)
        following = torch.stack([position.max() + 1 for position in positions])
        state = _State(
            cache=batch.cache,
            seen=seen.to(device).repeat_interleave(repeats, dim=0),
            next_position=following.to(device).repeat_interleave(repeats),
        )
        return last.repeat_interleave(repeats, dim=0), state

    def _vision(self, encoded: Sequence[Encoded], device: torch.device) -> Any:
        patches = [item.patches for item in encoded if item.patches is not None]
        if not patches:
            return None
        grids = [item.grid_thw for item in encoded if item.grid_thw is not None]
        return self._family.vision(self._module, torch.cat(patches).to(device), torch.cat(grids).to(device))


@define
class _State:
    """What decoding goes on from: cached keys and values, which of them each row may see, and the next position."""

    cache: Any
    seen: Tensor
    next_position: Tensor

    def keep(self, rows: Tensor) -> None:
        """Drops the rows that have ended."""
        self.cache.batch_select_indices(torch.nonzero(rows).squeeze(1))
        self.seen, self.next_position = self.seen[rows], self.next_position[rows]

    def step(self, family: ModelFamily, module: nn.Module, tokens: Tensor) -> Tensor:
        """Hidden states ``[R, D]`` after one more token in each row."""
        self.seen = torch.cat([self.seen, self.seen.new_ones(len(tokens), 1)], dim=1)
        batch = ModelBatch(
            input_ids=tokens.unsqueeze(1),
            position_ids=self.next_position.view(1, -1, 1).expand(3, -1, 1),
            token_kind=torch.zeros(len(tokens), 1, dtype=torch.int8, device=tokens.device),
            attention_mask=self.seen[:, None, None, :],
            cache=self.cache,
        )
        self.next_position = self.next_position + 1
        return family.forward(module, batch, None)[:, -1]


def _pad(x: Tensor, length: int) -> Tensor:
    return nn.functional.pad(x, (0, length - x.shape[-1]))


def _causal(lengths: Tensor, length: int) -> Tensor:
    """bool ``[B, 1, S, S]``: a token sees itself and the valid tokens before it."""
    triangle = torch.ones(length, length, dtype=torch.bool).tril()
    valid = torch.arange(length) < lengths.unsqueeze(1)
    return (triangle & valid[:, None, :])[:, None] | torch.eye(length, dtype=torch.bool)


def _new_cache(module: nn.Module) -> Any:
    from transformers import DynamicCache

    config: Any = module.config
    if not hasattr(config, "get_text_config"):
        raise ModelError(f"{type(module).__name__} is not a Transformers model")
    return DynamicCache(config=config.get_text_config())
