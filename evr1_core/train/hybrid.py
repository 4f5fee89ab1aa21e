"""A model behind one forward, so that batches of any modality make the same calls: the root of sharding."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evr1_core.api import Encoded, ModelFamily, Sample, VisionFeatures
from evr1_core.rollout.groups import EncodedPrompt, Group, Response
from evr1_core.train.features import FeatureStore, features_of, with_media
from evr1_core.train.logprobs import token_logprobs
from evr1_core.train.prefix import PackedGroups


class HybridModel(nn.Module):
    """Vision tower, text part and log-probabilities of one micro-batch.

    Images and videos share one pass of the vision tower; those that ``store`` holds need none. A micro-batch without media can make
    the same calls: with ``vision`` it runs the family's smallest medium, whose features count 0, so that processes that each hold a
    shard wait for each other's parameters and gradients in the same places.
    """

    def __init__(self, model: nn.Module, family: ModelFamily, *, temperature: float, banned: Sequence[int]) -> None:
        super().__init__()
        self.model, self.family = model, family
        self._temperature, self._banned = temperature, list(banned)
        self.store: FeatureStore | None = None
        self._smallest = family.dummy_patches(model)  # made now: a sharded model has no whole parameter to make it after

    def forward(self, packed: PackedGroups, vision: bool = False) -> tuple[Tensor, Tensor]:
        """(log-probability, entropy), each ``[N]``, of every response token."""
        head = self.family.head(self.model)
        return token_logprobs(self.hidden(packed, vision), head, packed.targets, temperature=self._temperature, banned=self._banned)

    def hidden(self, packed: PackedGroups, vision: bool) -> Tensor:
        """Hidden states ``[N, D]`` that predict the response tokens."""
        device, unused = packed.targets.device, None
        if vision and not with_media(packed.prompts, self.store):
            unused = self.family.vision(self.model, *(each.to(device) for each in self._smallest))
        features = features_of(packed.prompts, self.model, self.family, device, self.store)
        hidden = self.family.forward(self.model, packed.batch, features)[packed.rows, packed.columns]
        return hidden if unused is None else hidden + 0.0 * _sum(unused).to(hidden.dtype)


def _sum(features: VisionFeatures) -> Tensor:
    return torch.stack([each.sum() for each in (features.embeds, *features.deepstack)]).sum()


def filler(banned: Sequence[int]) -> Group:
    """The smallest group: what a process computes, at weight 0, while others still have groups left."""
    token = next(each for each in range(len(banned) + 1) if each not in banned)
    encoded = Encoded(input_ids=torch.tensor([token]), token_kind=torch.zeros(1, dtype=torch.int8))
    prompt = EncodedPrompt(
        sample=Sample(uid="filler", task="", problem="", answer=""),
        text="",
        clips=(),
        encoded=encoded,
        position_ids=torch.zeros(3, 1, dtype=torch.long),
    )
    return Group(prompt=prompt, responses=[Response(text="", token_ids=(token,), truncated=False)])
