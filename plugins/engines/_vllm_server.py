"""vLLM's asynchronous engine in a process of its own, which answers the engine plugin over a pipe.

    python -m evr1_plugins.engines._vllm_server DESCRIPTOR

The first message names the settings; every other is ``(number, kind, arguments)``, and its answer ``(number, status, value)`` with
the status ``ok``, ``refused`` (the request's own fault), ``failed`` (a fault of ours or of vLLM) or ``dead``.
"""

from __future__ import annotations

import asyncio
import base64
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from evr1_core.api import EngineInput, Sampling  # before vLLM: evr1_core brings an import hook for torchvision

INSPECT = "import evr1_core; from vllm.model_executor.models.registry import _run; _run()"
CPU_CACHE = 1 << 30  # bytes for keys and values on a CPU, where vLLM would take most of the memory
FEWEST = 8192  # tokens computed in one step on a CPU
PATIENCE = 20  # seconds to end in when nobody is there to ask any more


class Server:
    """Does what messages ask for; many requests at once."""

    def __init__(self, engine: Any, stops: Sequence[int], banned: Sequence[int]) -> None:
        self.engine = engine
        self._stops, self._banned = list(stops), {token: float("-inf") for token in banned}
        self._count = 0

    async def generate(self, given: EngineInput, sampling: Sampling) -> list[tuple[list[int], list[float]]]:
        """Token ids and log-probs of every response."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        greedy = sampling.temperature == 0
        params = SamplingParams(
            n=1 if greedy else sampling.n,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stop_token_ids=self._stops,
            ignore_eos=True,  # vLLM would add the tokenizer's own
            logit_bias=self._banned or None,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        [final] = [output async for output in self.engine.generate(_prompt(given), params, self._name())]
        outputs = sorted(final.outputs, key=lambda output: output.index)
        rows = [(list(output.token_ids), _logprobs(output)) for output in outputs]
        return rows * sampling.n if greedy else rows

    async def positions(self, given: EngineInput) -> tuple[list[int], list[list[int]]]:
        """(token ids of the prompt, their positions ``[3, S]``)."""
        from vllm import SamplingParams

        await self.engine.reset_mm_cache()  # what vLLM has had before it leaves out, and what it has here never gets to its workers
        request = await self.engine.input_processor.process_inputs_async(
            self._name(), _prompt(given), SamplingParams(), supported_tasks=await self.engine.get_supported_tasks()
        )
        tokens = list(request.prompt_token_ids)
        features = base64.b64encode(pickle.dumps(request.mm_features or [])).decode()  # vLLM's messages carry plain data alone
        found = await self.engine.collective_rpc("evr1_positions", args=(tokens, features))
        await self.engine.reset_mm_cache()
        return tokens, found[0]

    async def counts(self) -> dict[str, int]:
        """vLLM's own counters, by name."""
        from vllm.v1.metrics.reader import Counter, get_metrics_snapshot

        return {metric.name: metric.value for metric in get_metrics_snapshot() if isinstance(metric, Counter)}

    async def open(self, path: str, size: int) -> None:
        """All workers map the buffer of weights."""
        await self.engine.collective_rpc("evr1_open", args=(path, size))

    async def begin(self) -> None:
        """Weights are going to come."""
        await self.engine.collective_rpc("evr1_begin")

    async def load(self, entries: Sequence[Mapping[str, Any]]) -> list[str]:
        """Takes what lies in the buffer; returns problems."""
        found = await self.engine.collective_rpc("evr1_load", args=(list(entries),))
        return sorted({problem for problems in found for problem in problems})

    async def finish(self) -> tuple[list[str], int]:
        """(problems, parameters compared by checksum); nothing that was computed with the old weights is left."""
        found = await self.engine.collective_rpc("evr1_finish")
        await self.engine.reset_prefix_cache()
        await self.engine.reset_encoder_cache()
        await self.engine.reset_mm_cache()
        return sorted({problem for problems, _ in found for problem in problems}), min(compared for _, compared in found)

    async def sleep(self, level: int) -> None:
        """Level 1 moves weights to main memory, level 2 drops them."""
        await self.engine.sleep(level)

    async def wake(self) -> None:
        """Takes the memory back."""
        await self.engine.wake_up()

    def _name(self) -> str:
        self._count += 1
        return str(self._count)


def _prompt(given: EngineInput) -> dict[str, Any]:
    prompt: dict[str, Any] = {"prompt": given.text}
    if given.media:
        prompt |= {"multi_modal_data": dict(given.media), "mm_processor_kwargs": dict(given.processor_kwargs)}
    return prompt


def _logprobs(output: Any) -> list[float]:
    return [table[token].logprob for token, table in zip(output.token_ids, output.logprobs, strict=True)]


def build(arguments: Mapping[str, Any]) -> Any:
    """The engine. Raises ValueError for arguments that vLLM does not know."""
    from vllm import AsyncEngineArgs
    from vllm.model_executor.models import registry
    from vllm.platforms import current_platform
    from vllm.v1.engine.async_llm import AsyncLLM

    registry._SUBPROCESS_COMMAND = [sys.executable, "-c", INSPECT]  # its own command imports torchvision before any plugin
    unknown = sorted(set(arguments) - set(AsyncEngineArgs.__dataclass_fields__))
    if unknown:
        raise ValueError(f"engine_args: vLLM has no {', '.join(unknown)}")
    arguments = {**arguments, **(_for_cpu(arguments) if current_platform.is_cpu() else {})}
    return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))


def _for_cpu(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What differs on a CPU. Prompts are not computed in parts there, since vLLM takes back the random numbers that it drew behind
    a part, which generators of a CPU cannot do; its prefix cache for recurrent layers would need parts."""
    from vllm import AsyncEngineArgs

    model = AsyncEngineArgs(**arguments).create_model_config()
    return {
        "kv_cache_memory_bytes": arguments["kv_cache_memory_bytes"] or CPU_CACHE,
        "enable_sleep_mode": False,
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": max(model.max_model_len, FEWEST),
        "enable_prefix_caching": not model.is_hybrid,
    }


async def serve(pipe: Connection) -> None:
    """Answers until the other side is gone or the engine is dead."""
    from vllm.platforms import current_platform
    from vllm.v1.engine.exceptions import EngineDeadError

    settings = pipe.recv()
    loop = asyncio.get_running_loop()
    incoming: asyncio.Queue[Any] = asyncio.Queue()
    threading.Thread(target=_listen, args=(pipe, loop, incoming), daemon=True).start()
    engine = build(settings["arguments"])
    server = Server(engine, settings["stops"], settings["banned"])
    pipe.send((0, "ok", {"cpu": current_platform.is_cpu()}))

    tasks: dict[asyncio.Task[Any], int] = {}

    def answered(task: asyncio.Task[Any]) -> None:
        number, error = tasks.pop(task), task.exception()
        if error is None:
            pipe.send((number, "ok", task.result()))
        elif isinstance(error, EngineDeadError):
            pipe.send((number, "dead", str(error)))
            incoming.put_nowait(None)
        else:
            traceback.print_exception(error)
            status = "refused" if isinstance(error, ValueError | TypeError) else "failed"
            pipe.send((number, status, f"{type(error).__name__}: {error}"))

    try:
        while (message := await incoming.get()) is not None:
            number, kind, arguments = message
            task = asyncio.create_task(getattr(server, kind)(*arguments))
            tasks[task] = number
            task.add_done_callback(answered)
    finally:
        engine.shutdown(timeout=1.0)


def _listen(pipe: Connection, loop: asyncio.AbstractEventLoop, incoming: asyncio.Queue[Any]) -> None:
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            message = None
        loop.call_soon_threadsafe(incoming.put_nowait, message)
        if message is None:
            time.sleep(PATIENCE)  # it may be starting, or hang
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(serve(Connection(int(sys.argv[1]))))
