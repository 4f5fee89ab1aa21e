"""A value model: what a response is going to earn, guessed at each of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import evolve
from torch import Tensor, nn

from evr1_core.api import ModelFamily
from evr1_core.api.tensors import explained_variance, value_loss
from evr1_core.config.schema import RunConfig
from evr1_core.rollout.groups import Group
from evr1_core.train.hybrid import HybridModel
from evr1_core.train.memory import checkpoint_activations
from evr1_core.train.metrics import Sums, spread
from evr1_core.train.optim import Optimizer
from evr1_core.train.passes import Passes
from evr1_core.train.prefix import PackedGroups
from evr1_core.train.ranks import ALONE, Ranks


class ValueModel(HybridModel):
    """The backbone of a checkpoint with one number for each response token in place of a distribution; it begins at 0."""

    def __init__(self, model: nn.Module, family: ModelFamily, *, banned: Sequence[int]) -> None:
        super().__init__(model, family, temperature=1.0, banned=banned)
        embedding: Any = model.get_input_embeddings()  # type: ignore[operator]
        self.value_head = nn.Linear(embedding.weight.shape[1], 1)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)

    def forward(self, packed: PackedGroups, vision: bool = False) -> tuple[Tensor, Tensor]:
        """(values ``[N]`` at the tokens before each response token, zeros)."""
        hidden = self.hidden(packed, vision)
        values = self.value_head(hidden.to(self.value_head.weight.dtype)).squeeze(-1)
        return values, torch.zeros_like(values)


class Critic(Passes):
    """A value model under training; ``rows`` are its values."""

    def __init__(
        self, module: nn.Module, family: ModelFamily, processor: Any, config: RunConfig, total_updates: int, ranks: Ranks = ALONE
    ) -> None:
        super().__init__(module, family, processor, config, ranks)
        self._clip = config.critic.clip
        if config.train.gradient_checkpointing:
            checkpoint_activations(module)
        self.model = ValueModel(module, family, banned=self.banned)
        self.optimizer = Optimizer(self.model, evolve(config.train, lr=config.critic.lr), total_updates, self.place(config))

    def update(self, groups: Sequence[Group], values: Tensor, returns: Tensor, mask: Tensor) -> dict[str, float]:
        """One optimiser step towards ``returns``; ``values`` are those from before the step's updates. All ``[B, T]``."""
        self.module.train()
        sums = Sums()
        parts = self.parts(groups)
        agreed = self.agree(groups, len(parts), mask)
        for part in parts:
            new, _, own = self.forward(part.groups, agreed.vision)
            width, rows = own.shape[1], part.rows
            old, wanted, counted = (each.cpu()[rows, :width].to(new.device) for each in (values, returns, mask))
            result = value_loss(new, old, wanted.to(new.dtype), own & counted, clip=self._clip, tokens=agreed.tokens)
            result.loss.backward()
            sums.take(result)
        for _ in range(agreed.parts - len(parts)):
            self.idle(agreed.vision).backward()
        step = self.optimizer.step()
        return sums.means(self.ranks) | {name.replace("actor/", "critic/"): value for name, value in step.items()}


def value_metrics(values: Tensor, returns: Tensor, mask: Tensor) -> dict[str, float]:
    """Spread of values and returns over valid tokens, and the share of the returns' variance that the values explain."""
    values, mask = values.to(returns), mask.to(returns.device)
    metrics = spread("critic/values", values[mask]) | spread("critic/returns", returns[mask])
    return metrics | {"critic/vf_explained_var": explained_variance(returns, values, mask)}
