"""A model's parameters, gradients and optimiser state in shards, one a process (FSDP2, arXiv:2304.11277)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor

from evr1_core.train.hybrid import HybridModel
from evr1_core.train.ranks import Ranks


def shard(model: HybridModel, ranks: Ranks, dtype: torch.dtype, *, cpu_offload: bool) -> None:
    """Leaves this process its shard of every parameter. The family's units are gathered one after the other while they compute;
    the rest, such as embeddings and head, stays whole from the start of a pass to its end. All processes must hold equal weights.

    Trained parameters keep their type, are gathered as ``dtype``, and their gradients are reduced and added up in their own type.
    With ``cpu_offload`` shards, gradients and the optimiser's state lie in main memory.
    """
    mesh = init_device_mesh(ranks.device.type, (ranks.size,))
    trained = [parameter.dtype for parameter in model.parameters() if parameter.requires_grad]
    # What enters a unit is not cast: rotary frequencies are float32 in a model of any type.
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=trained[0], cast_forward_inputs=False)
    offload = CPUOffloadPolicy(pin_memory=ranks.device.type != "cpu") if cpu_offload else OffloadPolicy()
    for unit in reversed(model.family.shard_units(model.model)):  # inner units before outer ones
        fully_shard(unit, mesh=mesh, mp_policy=precision, offload_policy=offload)
    fully_shard(model, mesh=mesh, mp_policy=precision, offload_policy=offload)
    for module in model.modules():
        if isinstance(module, FSDPModule):  # losses are shares of a global mean already: gradients are added, not averaged
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


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
