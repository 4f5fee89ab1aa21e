"""AdamW, its learning-rate schedule, and gradients that are not numbers."""

from __future__ import annotations

import math

import torch
from torch import nn

from evr1_core.api import ConfigError
from evr1_core.config.schema import TrainConfig
from evr1_core.train.memory import Masters
from evr1_core.train.shard import whole


def lr_factor(kind: str, update: int, *, warmup: int, total: int, min_ratio: float, stable_ratio: float) -> float:
    """The share of the learning rate that the ``update``-th optimiser update (from 1) uses."""
    if update <= warmup:
        return update / warmup
    if kind == "constant":
        return 1.0
    span = total - warmup
    done = update - warmup
    if kind == "linear":
        return 1 - (1 - min_ratio) * done / span
    if kind == "wsd":
        stable = int(span * stable_ratio)
        if done <= stable:
            return 1.0
        done, span = done - stable, span - stable
    elif kind != "cosine":
        raise ValueError(f"unknown schedule {kind!r}")
    return min_ratio + (1 - min_ratio) * (1 + math.cos(math.pi * done / span)) / 2


class Optimizer:
    """AdamW over the trained parameters, or their ``masters``; weight decay leaves norms and biases alone."""

    def __init__(self, module: nn.Module, config: TrainConfig, total_updates: int, masters: Masters | None = None) -> None:
        self._config = config
        self._total = total_updates
        self._warmup = config.warmup_steps if config.warmup_steps is not None else int(config.warmup_ratio * total_updates)
        if self._warmup > total_updates:
            raise ConfigError([f"train.warmup_steps: {self._warmup} is more than the {total_updates} updates of the run"])
        self._masters = masters
        own = module.parameters() if masters is None else masters.parameters
        self._parameters = [parameter for parameter in own if parameter.requires_grad]
        matrices = [parameter for parameter in self._parameters if parameter.ndim >= 2]
        vectors = [parameter for parameter in self._parameters if parameter.ndim < 2]
        groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
        self._adamw = torch.optim.AdamW(groups, lr=config.lr, betas=config.betas, eps=1e-8)
        self._updates = 0

    def step(self) -> dict[str, float]:
        """One update. A gradient whose norm is no finite number is thrown away and counted."""
        self._updates += 1
        config = self._config
        factor = lr_factor(
            config.schedule,
            self._updates,
            warmup=self._warmup,
            total=self._total,
            min_ratio=config.min_lr_ratio,
            stable_ratio=config.stable_ratio,
        )
        for group in self._adamw.param_groups:
            group["lr"] = config.lr * factor
        norm = float(whole(torch.nn.utils.clip_grad_norm_(self._parameters, config.max_grad_norm)))
        finite = math.isfinite(norm)
        if finite:
            self._adamw.step()
            if self._masters:
                self._masters.write_back()
        self._adamw.zero_grad(set_to_none=True)
        metrics = {"actor/lr": config.lr * factor, "actor/skipped_updates": float(not finite)}
        return metrics | ({"actor/grad_norm": norm} if finite else {})

    def discard(self) -> float:
        """Throws the gradients away; returns their norm."""
        norm = torch.nn.utils.get_total_norm([each.grad for each in self._parameters if each.grad is not None])
        self._adamw.zero_grad(set_to_none=True)
        return float(whole(norm))
