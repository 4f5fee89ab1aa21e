"""Patch embedding as the matrix product that it is."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import linear


class PatchEmbed(nn.Module):
    """A convolution whose kernel is one whole patch, computed as a matrix product: the same numbers, without the convolution's slow
    backward pass."""

    proj: nn.Conv3d

    def forward(self, patches: Tensor) -> Tensor:
        """``[N, D]`` of ``[N, P]``."""
        weight = self.proj.weight
        return linear(patches.to(weight.dtype), weight.flatten(1), self.proj.bias)


def as_product(visual: Any) -> None:
    """Makes a vision tower embed its patches by a matrix product. Parameters and their names stay as they are."""
    visual.patch_embed.__class__ = PatchEmbed
