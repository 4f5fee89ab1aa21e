"""Low-rank adapters (LoRA, arXiv:2106.09685) by peft: put into a model, merged for those who know nothing of them, kept on disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from evr1_core.api import ConfigError, ModelError
from evr1_core.config.schema import LoraConfig
from evr1_core.train.shard import whole

FOLDER = "adapter"  # in the folder of the merged model
ADAPTER = "default"  # peft's name for the only adapter of a model
PREFIX = "base_model.model."  # before parameter names in peft's files


def add_adapters(module: nn.Module, config: LoraConfig, *, base: str, seed: int) -> Any:
    """Puts adapters beside the linear layers of the text part, and freezes everything else. Returns peft's description of them.

    A new adapter changes nothing until it is trained; its first factor is drawn by ``seed``. With ``config.start`` it is the one in
    that folder. Raises ConfigError without peft, ModelError for a folder that does not fit.
    """
    try:
        import peft
    except ImportError as error:
        raise ConfigError([f"lora: needs peft, which cannot be imported ({error}): pip install 'evr1[lora]'"]) from error
    described = _described(peft, config) if config.start else _new(peft, module, config, base)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        peft.inject_adapter_in_model(described, module, ADAPTER)
    if config.start:
        _load(module, Path(config.start))
    return described


def merged_parameters(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Name and value of every parameter that the model would have without adapters, with what they add; whole, also of a model in
    shards (all processes have to ask)."""
    for name, parameter in module.named_parameters():
        if ".lora_" in name:
            continue
        value = whole(parameter.detach())
        owner, _, kind = name.rpartition(".base_layer.")
        if not owner:
            yield name, value
            continue
        layer: Any = module.get_submodule(owner)
        if kind == "weight":
            first, second = (whole(each[ADAPTER].weight.detach()).float() for each in (layer.lora_A, layer.lora_B))
            value = (value.float() + layer.scaling[ADAPTER] * (second @ first)).to(value.dtype)
        yield f"{owner}.{kind}", value


def adapter_state(module: nn.Module) -> dict[str, Tensor]:
    """The parameters of the adapters, named as in peft's files, whole and on the CPU."""
    named = {name: parameter for name, parameter in module.named_parameters() if ".lora_" in name}
    return {_filed(name): whole(parameter.detach()).cpu().contiguous() for name, parameter in named.items()}


def save_adapters(described: Any, state: Mapping[str, Tensor], folder: Path) -> None:
    """Writes what ``peft.PeftModel.from_pretrained`` loads onto the base model."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    described.save_pretrained(folder)
    save_file(dict(state), folder / "adapter_model.safetensors")


def _new(peft: Any, module: nn.Module, config: LoraConfig, base: str) -> Any:
    names = [name for name, each in module.named_modules() if isinstance(each, nn.Linear) and _in_text_part(name)]
    targets = sorted(config.targets or {name.rpartition(".")[2] for name in names})
    found = [name for name in names if name.rpartition(".")[2] in targets]
    missing = set(targets) - {name.rpartition(".")[2] for name in found}
    if missing:
        raise ConfigError([f"lora.targets: the text part has no linear layers {sorted(missing)}"])
    return peft.LoraConfig(
        r=config.rank, lora_alpha=config.alpha, target_modules=found, base_model_name_or_path=base, inference_mode=False
    )


def _in_text_part(name: str) -> bool:
    """Neither in the vision tower, which Transformers calls so, nor the head, which several models share with the embedding."""
    return ".visual." not in f".{name}" and not name.endswith("lm_head")


def _described(peft: Any, config: LoraConfig) -> Any:
    folder = Path(config.start)
    if not (folder / "adapter_config.json").is_file():
        raise ModelError(f"lora.start: {folder} holds no adapter (adapter_config.json)")
    described = peft.PeftConfig.from_pretrained(str(folder))
    if not isinstance(described, peft.LoraConfig) or described.use_dora or described.bias != "none" or described.lora_dropout:
        raise ModelError(f"lora.start: {folder} is no plain LoRA adapter without biases and dropout")
    described.inference_mode = False
    return described


def _load(module: nn.Module, folder: Path) -> None:
    from safetensors.torch import load_file

    state = load_file(folder / "adapter_model.safetensors")
    own = {_filed(name): parameter for name, parameter in module.named_parameters() if ".lora_" in name}
    wrong = sorted(own.keys() ^ state.keys()) or [name for name, parameter in own.items() if parameter.shape != state[name].shape]
    if wrong:
        raise ModelError(f"lora.start: the adapter in {folder} is of another model: {', '.join(wrong[:3])} and others do not fit")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state[name])


def _filed(name: str) -> str:
    return PREFIX + name.replace(f".{ADAPTER}.", ".")
