"""Prompts through the model, each once, in passes of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from attrs import define
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, LinearAttentionLayer

from evr1_core.api import Encoded, ModelBatch, ModelError, ModelFamily


@define
class Prefilled:
    """Prompts as the model left them. ``hidden`` ``[P, D]`` behind each, ``following`` ``[P]`` the next position, ``seen`` bool
    ``[P, S]`` where it has tokens, ``cache`` with a row a prompt."""

    hidden: Tensor
    cache: Any
    seen: Tensor
    following: Tensor


def prefill(family: ModelFamily, module: nn.Module, encoded: Sequence[Encoded], tokens: int) -> Prefilled:
    """All prompts, as many in a pass as come to ``tokens`` with their padding, one at least. Padding stands on the left: a
    recurrent state must end with the prompt's last token."""
    return _joined([_one_pass(family, module, own) for own in _passes(encoded, tokens)])


def _passes(encoded: Sequence[Encoded], tokens: int) -> Iterator[Sequence[Encoded]]:
    first = longest = 0
    for place, item in enumerate(encoded):
        longest = max(longest, len(item.input_ids))
        if place > first and longest * (place + 1 - first) > tokens:
            yield encoded[first:place]
            first, longest = place, len(item.input_ids)
    yield encoded[first:]


def _one_pass(family: ModelFamily, module: nn.Module, encoded: Sequence[Encoded]) -> Prefilled:
    device = next(module.parameters()).device
    length = max(len(item.input_ids) for item in encoded)
    positions = [family.position_ids(item) for item in encoded]
    seen = torch.stack([_padded(torch.ones_like(item.input_ids, dtype=torch.bool), length) for item in encoded]).to(device)
    cache = _new_cache(module)
    batch = ModelBatch(
        input_ids=torch.stack([_padded(item.input_ids, length) for item in encoded]).to(device),
        position_ids=torch.stack([_padded(position, length) for position in positions], dim=1).to(device),
        token_kind=torch.stack([_padded(item.token_kind, length) for item in encoded]).to(device),
        attention_mask=_visible(seen),
        cache=cache,
        valid=seen,
    )
    hidden = family.forward(module, batch, _vision(family, module, encoded, device))
    following = torch.stack([position.max() + 1 for position in positions]).to(device)
    return Prefilled(hidden=hidden[:, -1], cache=cache, seen=seen, following=following)


def _visible(seen: Tensor) -> Tensor | None:
    """bool ``[P, 1, S, S]``; None, which is causal and takes no memory, where nothing is padding."""
    if bool(seen.all()):
        return None
    length = seen.shape[1]
    triangle = torch.ones(length, length, dtype=torch.bool, device=seen.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=seen.device)  # padding sees itself, so that no row of the softmax is empty
    return ((triangle & seen[:, None, :]) | itself)[:, None]


def _vision(family: ModelFamily, module: nn.Module, encoded: Sequence[Encoded], device: torch.device) -> Any:
    patches = [item.patches for item in encoded if item.patches is not None]
    if not patches:
        return None
    grids = [item.grid_thw for item in encoded if item.grid_thw is not None]
    return family.vision(module, torch.cat(patches).to(device), torch.cat(grids).to(device))


def _joined(parts: Sequence[Prefilled]) -> Prefilled:
    if len(parts) == 1:
        return parts[0]
    length = max(part.seen.shape[1] for part in parts)
    cache = parts[0].cache
    for number, layer in enumerate(cache.layers):
        own = [part.cache.layers[number] for part in parts]
        if isinstance(layer, DynamicLayer):
            layer.keys = torch.cat([pad(each.keys, (0, 0, length - each.keys.shape[2], 0)) for each in own])
            layer.values = torch.cat([pad(each.values, (0, 0, length - each.values.shape[2], 0)) for each in own])
        if isinstance(layer, LinearAttentionLayer):
            for state in range(layer.number_of_states):
                layer.conv_states[state] = torch.cat([each.conv_states[state] for each in own])
                layer.recurrent_states[state] = torch.cat([each.recurrent_states[state] for each in own])
    return Prefilled(
        hidden=torch.cat([part.hidden for part in parts]),
        cache=cache,
        seen=torch.cat([_padded(part.seen, length) for part in parts]),
        following=torch.cat([part.following for part in parts]),
    )


def _padded(x: Tensor, length: int) -> Tensor:
    return pad(x, (length - x.shape[-1], 0))


def _new_cache(module: nn.Module) -> Any:
    config: Any = module.config
    if not hasattr(config, "get_text_config"):
        raise ModelError(f"{type(module).__name__} is not a Transformers model")
    return DynamicCache(config=config.get_text_config())
