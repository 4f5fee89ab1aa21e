"""A model's parameters, gradients and optimiser state in shards, one a process (FSDP2, arXiv:2304.11277)."""

from __future__ import annotations

from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from evr1_core.train.hybrid import HybridModel
from evr1_core.train.ranks import Ranks


def shard(model: HybridModel, ranks: Ranks) -> None:
    """Leaves this process its shard of every parameter. The family's units are gathered one after the other while they compute;
    the rest, such as embeddings and head, stays whole from the start of a pass to its end. All processes must hold equal weights.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    for unit in reversed(model.family.shard_units(model.model)):  # inner units before outer ones
        fully_shard(unit, mesh=mesh)
    fully_shard(model, mesh=mesh)


def is_sharded(model: HybridModel) -> bool:
    """This process holds a shard only."""
    return isinstance(model, FSDPModule)


def reshard(model: HybridModel) -> None:
    """Lets go of what a pass without gradients has left whole."""
    if isinstance(model, FSDPModule):
        model.reshard()


def whole(value: Tensor) -> Tensor:
    """The tensor that processes hold shards of; all of them have to ask. Any other tensor is whole already."""
    if not isinstance(value, DTensor):
        return value
    full: Tensor = value.to(value.device_mesh.device_type).full_tensor()  # type: ignore[attr-defined]  # an offloaded one is moved
    return full
