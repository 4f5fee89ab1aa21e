"""What every worker of vLLM can do besides: take weights, one tensor after the other, and say where a prompt's tokens stand.

vLLM makes this class a base of its own worker (``worker_extension_cls``). Its layers may have packed their weights for the
processor, or hold several of the trainer's as one, so weights go in by the model's own loader, between the two calls that vLLM has
for loading again.
"""

from __future__ import annotations

import base64
import logging
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn
from vllm.config import set_current_vllm_config
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from evr1_plugins.engines._vllm_buffer import checksum, mapped, tensor_at


@frozen
class Taken:
    """One of the trainer's tensors that went into a parameter; ``checksum`` is that of the parameter's type."""

    numel: int
    checksum: int


class WeightSync:
    """Methods that the engine calls in all workers at once."""

    vllm_config: Any
    model_config: Any
    model_runner: Any
    device: torch.device

    def evr1_open(self, path: str, size: int) -> None:
        """Maps the buffer of the sender."""
        self._evr1_data = mapped(Path(path), size)

    def evr1_begin(self) -> None:
        """Gets ready for new weights."""
        model = self.model_runner.get_model()
        # It would warn of every layer that has buffers alone.
        logging.getLogger(finalize_layerwise_reload.__module__).setLevel(logging.ERROR)
        with set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
        self._evr1_wanted: dict[str, Any] = dict(model.named_parameters())
        self._evr1_taken: dict[str, list[Taken]] = {name: [] for name in self._evr1_wanted}

    def evr1_load(self, entries: Sequence[Mapping[str, Any]]) -> list[str]:
        """Takes the tensors that lie in the buffer. Returns what is wrong with them."""
        with set_current_vllm_config(self.vllm_config):
            return [problem for entry in entries for problem in self._evr1_take(entry)]

    def _evr1_take(self, entry: Mapping[str, Any]) -> Iterator[str]:
        name = entry["name"]
        view = tensor_at(self._evr1_data, entry["dtype"], entry["shape"], entry["offset"])
        if checksum(view) != entry["checksum"]:
            yield f"{name}: the checksum differs from the trainer's"
        # A layer keeps its parts until it has all of them, and the buffer is filled anew before that.
        value = view.to(self.device, copy=True)
        try:
            parameters = self.model_runner.get_model().load_weights([(name, value)])
        except (KeyError, ValueError, RuntimeError, AssertionError) as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            yield f"{name}: unexpected, vLLM's model does not take it ({said[:200]})"
            return
        if not parameters:
            yield f"{name}: unexpected, vLLM's model has no such parameter"
        for parameter in parameters:
            kind = self._evr1_wanted[parameter].dtype
            self._evr1_taken[parameter].append(Taken(value.numel(), checksum(value.to(kind))))

    def evr1_finish(self) -> tuple[list[str], int]:
        """(what is missing or differs from the trainer's weights, how many parameters were compared)."""
        model = self.model_runner.get_model()
        try:
            with set_current_vllm_config(self.vllm_config):
                finalize_layerwise_reload(model, self.model_config)
                _pack_shared(model)
        except (RuntimeError, ValueError, AssertionError) as error:
            return [f"what was taken cannot be put in place ({type(error).__name__} {error})"], 0
        problems, compared = [], 0
        for name, parameter in model.named_parameters():
            wanted, taken = self._evr1_wanted[name], self._evr1_taken[name]
            if not self._evr1_whole(model, name, wanted, taken):
                problems.append(f"{name}: missing, of {wanted.numel()} numbers came {sum(part.numel for part in taken)}")
            elif len(taken) == 1 and taken[0].numel <= wanted.numel() and _as_loaded(parameter, wanted):
                compared += 1
                if checksum(parameter.flatten()[: taken[0].numel]) != taken[0].checksum:
                    problems.append(f"{name}: the checksum of vLLM's parameter differs from that of the trainer's")
        del self._evr1_wanted, self._evr1_taken
        return problems, compared

    def _evr1_whole(self, model: nn.Module, name: str, wanted: Tensor, taken: Sequence[Taken]) -> bool:
        total = sum(part.numel for part in taken)
        if isinstance(model.get_submodule(name.rpartition(".")[0]), VocabParallelEmbedding):
            return total > 0  # it has more rows than there are tokens
        return wanted.numel() <= total <= wanted.numel() * self.vllm_config.parallel_config.tensor_parallel_size

    def evr1_positions(self, token_ids: Sequence[int], features: str) -> list[list[int]]:
        """``[3, S]``: where the model places a prompt's tokens in time, height and width."""
        model: Any = self.model_runner.get_model()
        positions, _ = model.get_mrope_input_positions(list(token_ids), pickle.loads(base64.b64decode(features)))
        return positions.tolist()


def _pack_shared(model: nn.Module) -> None:
    """A head that is the embedding got no weights of its own, so that what it has packed of the old ones is still in use."""
    layers: list[Any] = [layer for layer in model.modules() if isinstance(layer, VocabParallelEmbedding)]
    places = Counter(layer.weight.data_ptr() for layer in layers)
    for layer in layers:
        if places[layer.weight.data_ptr()] > 1:
            layer.quant_method.process_weights_after_loading(layer)


def _as_loaded(parameter: Tensor, wanted: Tensor) -> bool:
    """The parameter is still what the loader made, not packed for the processor."""
    return parameter.shape == wanted.shape and parameter.dtype == wanted.dtype
