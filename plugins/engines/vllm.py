"""Rollouts from vLLM, in a process of its own that takes the policy's weights after every update."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import ConfigError, EngineError, ModelError, ModelFamily, Request, Rollout, RolloutEngine, WeightsLostError
from evr1_plugins.engines._sampling import end_ids, rollout
from evr1_plugins.engines._vllm_probe import compare
from evr1_plugins.engines._vllm_process import GoneError, Process
from evr1_plugins.engines._vllm_weights import send

POSITIVE: Any = validators.gt(0)
SHARE: Any = validators.and_(POSITIVE, validators.lt(1))
WORKER = "evr1_plugins.engines._vllm_worker.WeightSync"


@define(kw_only=True)
class VllmEngine(RolloutEngine):
    """Asks vLLM, which runs in processes of its own: continuous batching, prompts and vision features computed once for all their
    responses. A dead vLLM is started anew once, gets the policy's weights and is asked again."""

    api = 1

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = field(
        default="auto", metadata={"help": "type that vLLM computes in; auto: that of the checkpoint; best the same as model.dtype"}
    )
    tensor_parallel_size: int = field(default=1, validator=POSITIVE, metadata={"help": "GPUs that share one model"})
    gpu_memory_utilization: float = field(
        default=0.5,
        validator=SHARE,
        metadata={"help": "share of a GPU's memory for weights, keys and values; the trainer may need the rest"},
    )
    cache_gb: float | None = field(
        default=None,
        validator=validators.optional(POSITIVE),
        metadata={"help": "memory for keys and values; None: what gpu_memory_utilization leaves, 1 on a CPU"},
    )
    max_model_len: int | None = field(
        default=None,
        validator=validators.optional(POSITIVE),
        metadata={"help": "tokens of a prompt and its response at most; None: the model's own limit"},
    )
    max_num_seqs: int | None = field(
        default=None, validator=validators.optional(POSITIVE), metadata={"help": "responses decoded together; None: vLLM's default"}
    )
    max_images: int = field(default=16, validator=validators.ge(0), metadata={"help": "images of a prompt at most"})
    max_videos: int = field(default=4, validator=validators.ge(0), metadata={"help": "videos of a prompt at most"})
    enforce_eager: bool = field(default=False, metadata={"help": "compile nothing: starts sooner, decodes slower on a GPU"})
    sleep_level: Literal[0, 1, 2] = field(
        default=0,
        metadata={"help": "during updates, give device memory back: 1 keeps the weights in main memory, 2 drops them; 0: keep all"},
    )
    queue: int = field(default=64, validator=POSITIVE, metadata={"help": "prompts that vLLM has at a time; the others wait"})
    start_limit: float = field(default=1200.0, validator=POSITIVE, metadata={"help": "seconds that vLLM may take to start"})
    engine_args: Mapping[str, Any] = field(factory=dict, metadata={"help": "further arguments of vLLM's AsyncEngineArgs"})

    _settings: Mapping[str, Any] = field(factory=dict, init=False)
    _process: Any = field(default=None, init=False)
    _slots: Any = field(default=None, init=False)
    _family: Any = field(default=None, init=False)
    _processor: Any = field(default=None, init=False)
    _restarted: bool = field(default=False, init=False)
    _on_cpu: bool = field(default=False, init=False)
    _lost: bool = field(default=False, init=False)  # the policy's weights: what vLLM has is the checkpoint's, or nothing

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        if find_spec("vllm") is None:
            raise ConfigError(["rollout.engine: vLLM is not installed: pip install 'evr1[vllm]'"])
        self._family, self._processor = family, processor
        self._slots = asyncio.Semaphore(self.queue)
        self._settings = {
            "arguments": self._arguments(model_path),
            "stops": end_ids(_generation_config(model_path), processor.tokenizer),
            "banned": sorted(family.banned_ids(processor)),
        }
        await self._launch()
        await compare(self._process, family, processor)

    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        await self._ensure_alive()
        if self._lost:
            raise WeightsLostError("rollout.engine: vLLM does not have the policy's weights")
        try:
            return list(await asyncio.gather(*(self._answer(request) for request in requests)))
        except GoneError:
            await self._ensure_alive()
            raise WeightsLostError("rollout.engine: vLLM has died and was started anew") from None

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        await self._ensure_alive()
        try:
            await send(self._process, ((self._family.engine_names(name), value) for name, value in weights))
        except EngineError:
            self._lost = True
            raise
        except GoneError:
            await self._ensure_alive()
            raise WeightsLostError("rollout.engine: vLLM has died while it took weights, and was started anew") from None
        self._lost = False

    async def sleep(self) -> None:
        if not self.sleep_level:
            return
        if self._on_cpu:
            warnings.warn("rollout.engine.options.sleep_level: does nothing on a CPU", stacklevel=2)
            return
        await self._process.call("sleep", self.sleep_level)
        self._lost = self.sleep_level == 2

    async def wake(self) -> None:
        if self.sleep_level and not self._on_cpu:
            await self._process.call("wake")

    async def close(self) -> None:
        if self._process is not None:
            await asyncio.to_thread(self._process.close)
            self._process = None

    async def _answer(self, request: Request) -> list[Rollout]:
        async with self._slots:
            given = self._family.engine_input(request.text, request.clips)
            try:
                rows = await self._process.call("generate", given, request.sampling)
            except ModelError as error:
                raise ModelError(f"{request.uid}: {error}") from error
        tokenizer, stops = self._processor.tokenizer, self._settings["stops"]
        return [rollout(tokenizer, stops, tokens, logprobs) for tokens, logprobs in rows]

    async def _launch(self) -> None:
        eager = {"TORCH_COMPILE_DISABLE": "1"} if self.enforce_eager else {}  # vLLM compiles its sampler all the same
        self._process = Process(self._settings, eager)
        self._on_cpu = (await self._process.started(self.start_limit))["cpu"]

    async def _ensure_alive(self) -> None:
        """Starts vLLM anew where it has died, once. Raises EngineError the second time."""
        if not self._process.gone:
            return
        tail = self._process.tail()
        await self.close()
        if self._restarted:
            raise EngineError(f"rollout.engine: vLLM has died again; it wrote:\n{tail}")
        self._restarted = self._lost = True
        warnings.warn(f"vLLM has died and is started anew, once; it wrote:\n{tail}", stacklevel=2)
        await self._launch()

    def _arguments(self, model_path: str) -> dict[str, Any]:
        """Of vLLM's AsyncEngineArgs. Raises ConfigError for further ones that have an option of their own or are fixed."""
        fixed = {
            "model": model_path,
            "dtype": _stored_type(model_path) if self.dtype == "auto" else self.dtype,
            "tensor_parallel_size": self.tensor_parallel_size,
            "gpu_memory_utilization": self.gpu_memory_utilization,
            "kv_cache_memory_bytes": None if self.cache_gb is None else int(self.cache_gb * (1 << 30)),
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "limit_mm_per_prompt": {"image": self.max_images, "video": self.max_videos},
            "enforce_eager": self.enforce_eager,
            "enable_sleep_mode": self.sleep_level > 0,
            "enable_prefix_caching": True,
            "logprobs_mode": "processed_logprobs",
            "generation_config": "vllm",  # how to sample is said with every request
            "worker_extension_cls": WORKER,
        }
        twice = sorted(fixed.keys() & self.engine_args.keys())
        if twice:
            raise ConfigError([f"rollout.engine.options.engine_args: {name} is set by the engine" for name in twice])
        return fixed | dict(self.engine_args)


def _stored_type(model_path: str) -> str:
    """The type of a checkpoint's weights; vLLM's own choice would be bfloat16 for one in float32."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_path, local_files_only=True)
    return str(config.dtype or config.get_text_config().dtype or "float32").removeprefix("torch.")


def _generation_config(model_path: str) -> Any:
    """As Transformers gives it to the model of this folder."""
    from transformers import AutoConfig, GenerationConfig

    if (Path(model_path) / "generation_config.json").is_file():
        return GenerationConfig.from_pretrained(model_path, local_files_only=True)
    return GenerationConfig.from_model_config(AutoConfig.from_pretrained(model_path, local_files_only=True))
