"""The arguments of a vector, as the types that functions take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from evr1_core.api import Evr1Error


@frozen
class Inputs:
    """Arguments by name. Every accessor raises Evr1Error for one that is missing or of the wrong kind."""

    values: Mapping[str, Any]
    algorithm: str | None = None  # the plugin that is asked in place of the built-in ones

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """The argument as it is; the default where it is missing or null."""
        return self.values[name] if name in self else default

    def needed(self, name: str) -> Any:
        """The argument as it is."""
        if name not in self:
            raise Evr1Error(f"argument {name!r} is missing (given: {', '.join(self.values) or 'none'})")
        return self.values[name]

    def tensor(self, name: str) -> Tensor:
        """float64."""
        return as_tensor(self.needed(name), name)

    def optional(self, name: str) -> Tensor | None:
        """float64; None where it is missing or null."""
        return self.tensor(name) if name in self else None

    def mask(self) -> Tensor:
        """bool ``[B, T]``."""
        return self.tensor("mask") != 0

    def groups(self) -> Tensor:
        """int64 ``[B]``: the group ids as numbers."""
        names = list(self.needed("uid"))
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return torch.tensor([numbers[name] for name in names])

    def flags(self, name: str, count: int) -> Tensor:
        """bool ``[count]``; all False where it is missing or null."""
        return self.tensor(name) != 0 if name in self else torch.zeros(count, dtype=torch.bool)


def as_tensor(values: Any, name: str) -> Tensor:
    """float64, from numbers in lists of lists."""
    try:
        return torch.tensor(values, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise Evr1Error(f"argument {name!r} is no array of numbers: {error}") from error


def plain(value: Any) -> Any:
    """Tensors as lists and numbers, inside mappings and sequences too."""
    if isinstance(value, Tensor):
        return value.detach().tolist()
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value
