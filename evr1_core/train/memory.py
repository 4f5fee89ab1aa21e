"""Memory for time or for precision: activations computed again, parameters in bfloat16 with float32 copies for the optimiser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from evr1_core.api import ConfigError


def checkpoint_activations(module: nn.Module) -> None:
    """Keeps only the input of each block in training, and computes the rest again in the backward pass: equal gradients."""
    model: Any = module
    if not getattr(module, "supports_gradient_checkpointing", False):
        raise ConfigError([f"train.gradient_checkpointing: {type(module).__name__} does not support it"])
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


class Masters:
    """Copies of the trained parameters in the type that they were loaded in, for the optimiser; the model computes in another.

    An update at the learning rates of reinforcement learning is smaller than bfloat16 can tell from none. Gradients of all parts of
    a mini-batch are added up in the type of the copies, too.
    """

    def __init__(self, module: nn.Module, dtype: torch.dtype) -> None:
        self._low: list[nn.Parameter] = []
        self.parameters: list[nn.Parameter] = []
        for parameter in module.parameters():
            if parameter.requires_grad:
                copy = nn.Parameter(parameter.detach().clone().to(torch.promote_types(parameter.dtype, torch.float32)))
                self._low.append(parameter)
                self.parameters.append(copy)
                parameter.register_post_accumulate_grad_hook(_collector(copy))
        lower(module, dtype)

    def write_back(self) -> None:
        """Gives the model what the optimiser has made of the copies."""
        with torch.no_grad():
            for low, copy in zip(self._low, self.parameters, strict=True):
                low.copy_(copy)


def lower(module: nn.Module, dtype: torch.dtype, *, trained: bool = True) -> None:
    """Changes the type of parameters, of all or of the frozen ones; buffers, such as rotary frequencies, keep theirs."""
    for parameter in module.parameters():
        if trained or not parameter.requires_grad:
            parameter.data = parameter.data.to(dtype)


def _collector(copy: nn.Parameter) -> Any:
    def collect(low: Tensor) -> None:
        assert low.grad is not None
        gradient = low.grad.to(copy.dtype)
        copy.grad = gradient if copy.grad is None else copy.grad + gradient
        low.grad = None

    return collect
