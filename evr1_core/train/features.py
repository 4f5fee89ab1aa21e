"""Vision features of prompts: computed once for all rows of a prompt, and once a step where the vision tower is not trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from evr1_core.api import ModelError, ModelFamily, VisionFeatures
from evr1_core.rollout.groups import EncodedPrompt


class FeatureStore:
    """Features that a frozen tower has made of prompts, in main memory, until they are let go of.

    A visual token takes width x (1 + deepstack levels) values of the model's type: 32 KiB in Qwen3-VL-8B.
    """

    def __init__(self) -> None:
        self._own: WeakKeyDictionary[EncodedPrompt, VisionFeatures] = WeakKeyDictionary()

    def __contains__(self, prompt: EncodedPrompt) -> bool:
        return prompt in self._own

    def put(self, prompt: EncodedPrompt, features: VisionFeatures) -> None:
        """Keeps a copy; of a part of a larger tensor, the part alone."""
        self._own[prompt] = _each(features, lambda x: x.detach().to("cpu", copy=True))

    def get(self, prompt: EncodedPrompt, device: torch.device) -> VisionFeatures:
        """The features on ``device``. Raises KeyError without any."""
        return _each(self._own[prompt], lambda x: x.to(device))

    def clear(self) -> None:
        """Lets go of everything."""
        self._own.clear()


def is_frozen(module: nn.Module) -> bool:
    """The vision tower, found by the name that Transformers gives it, is there and not trained."""
    own = [parameter for name, parameter in module.named_parameters() if ".visual." in f".{name}"]
    return bool(own) and not any(parameter.requires_grad for parameter in own)


def with_media(prompts: Sequence[EncodedPrompt], store: FeatureStore | None) -> list[EncodedPrompt]:
    """The prompts whose media have to go through the tower, each once."""
    own = [prompt for prompt in dict.fromkeys(prompts) if prompt.encoded.grid_thw is not None]
    return own if store is None else [prompt for prompt in own if prompt not in store]


def features_of(
    prompts: Sequence[EncodedPrompt], model: nn.Module, family: ModelFamily, device: torch.device, store: FeatureStore | None
) -> VisionFeatures | None:
    """Features of all media of ``prompts``, in order, by one pass of the tower over what ``store`` does not hold; None without any.
    A prompt may come several times."""
    new = with_media(prompts, store)
    made: dict[EncodedPrompt, VisionFeatures] = {}
    if new:
        patches = torch.cat([prompt.encoded.patches for prompt in new if prompt.encoded.patches is not None])
        grids = torch.cat([prompt.encoded.grid_thw for prompt in new if prompt.encoded.grid_thw is not None])
        made = dict(zip(new, _split(family.vision(model, patches.to(device), grids.to(device)), new), strict=True))
        if store is not None:
            for prompt, features in made.items():
                store.put(prompt, features)
    seen = [prompt for prompt in prompts if prompt.encoded.grid_thw is not None]
    if not seen:
        return None
    stored = {prompt: store.get(prompt, device) for prompt in set(seen) - made.keys()} if store is not None else {}
    every = [made[prompt] if prompt in made else stored[prompt] for prompt in seen]
    return VisionFeatures(
        embeds=torch.cat([each.embeds for each in every]),
        deepstack=tuple(torch.cat(level) for level in zip(*(each.deepstack for each in every), strict=True)),
    )


def _split(features: VisionFeatures, prompts: Sequence[EncodedPrompt]) -> list[VisionFeatures]:
    counts = [int((prompt.encoded.token_kind > 0).sum()) for prompt in prompts]
    if sum(counts) != len(features.embeds):
        raise ModelError(f"{sum(counts)} visual tokens and {len(features.embeds)} vision features in one batch")
    parts = [level.split(counts) for level in (features.embeds, *features.deepstack)]
    return [VisionFeatures(embeds=own[0], deepstack=own[1:]) for own in zip(*parts, strict=True)]


def _each(features: VisionFeatures, change: Callable[[Tensor], Tensor]) -> VisionFeatures:
    return VisionFeatures(embeds=change(features.embeds), deepstack=tuple(map(change, features.deepstack)))
