"""Rollouts from vLLM, in a process of its own that takes the policy's weights after every update."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import ConfigError, EngineError, ModelError, ModelFamily, Request, Rollout, RolloutEngine, WeightsLostError
from evr1_plugins.engines._sampling import end_ids, rollout
from evr1_plugins.engines._vllm_probe import compare
from evr1_plugins.engines._vllm_process import GoneError, Process
from evr1_plugins.engines._vllm_settings import arguments, generation_config
from evr1_plugins.engines._vllm_weights import send

POSITIVE: Any = validators.gt(0)
SHARE: Any = validators.and_(POSITIVE, validators.lt(1))


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
    _restarting: Any = field(default=None, init=False)
    _family: Any = field(default=None, init=False)
    _processor: Any = field(default=None, init=False)
    _restarted: bool = field(default=False, init=False)
    _given: bool = field(default=False, init=False)  # weights other than the checkpoint's
    _lost: bool = field(default=False, init=False)  # the weights that it was given
    _on_cpu: bool = field(default=False, init=False)

    @property
    def appetite(self) -> int:
        return self.queue

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        if find_spec("vllm") is None:
            raise ConfigError(["rollout.engine: vLLM is not installed: pip install 'evr1[vllm]'"])
        self._family, self._processor = family, processor
        self._slots, self._restarting = asyncio.Semaphore(self.queue), asyncio.Lock()
        self._settings = {
            "arguments": arguments(self, model_path),
            "stops": end_ids(generation_config(model_path), processor.tokenizer),
            "banned": sorted(family.banned_ids(processor)),
        }
        await self._launch()
        await compare(self._process, family, processor)

    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        while True:
            await self._ensure_alive()
            if self._lost:
                raise WeightsLostError("rollout.engine: vLLM does not have the policy's weights")
            try:
                return list(await asyncio.gather(*(self._answer(request) for request in requests)))
            except GoneError:
                continue

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        await self._ensure_alive()
        self._given = self._lost = True
        try:
            await send(self._process, ((self._family.engine_names(name), value) for name, value in weights))
        except GoneError:
            await self._ensure_alive()
            raise WeightsLostError("rollout.engine: vLLM has died while it took weights") from None
        self._lost = False

    async def sleep(self) -> None:
        if self.sleep_level and self._on_cpu:
            warnings.warn("rollout.engine.options.sleep_level: does nothing on a CPU", stacklevel=2)
        elif self.sleep_level:
            self._lost |= self.sleep_level == 2
            await self._told("sleep", self.sleep_level)

    async def wake(self) -> None:
        if self.sleep_level and not self._on_cpu:
            await self._told("wake")

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

    async def _told(self, kind: str, *values: Any) -> None:
        await self._ensure_alive()
        try:
            await self._process.call(kind, *values)
        except GoneError:
            await self._ensure_alive()

    async def _launch(self) -> None:
        eager = {"TORCH_COMPILE_DISABLE": "1"} if self.enforce_eager else {}  # vLLM compiles its sampler all the same
        self._process = Process(self._settings, eager)
        self._on_cpu = (await self._process.started(self.start_limit))["cpu"]

    async def _ensure_alive(self) -> None:
        """Starts vLLM anew where it has died, once. Raises EngineError the second time."""
        async with self._restarting:
            if not self._process.gone:
                return
            tail = self._process.tail()
            await asyncio.to_thread(self._process.close)
            if self._restarted:
                raise EngineError(f"rollout.engine: vLLM has died again; it wrote:\n{tail}")
            self._restarted, self._lost = True, self._given
            warnings.warn(f"vLLM has died and is started anew, once; it wrote:\n{tail}", stacklevel=2)
            await self._launch()
