"""The policy's weights to vLLM: a buffer's worth at a time, checked on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from evr1_core.api import EngineError
from evr1_plugins.engines._vllm_buffer import SIZE, Buffer

SHOWN = 10  # problems in a message


async def send(process: Any, weights: Iterable[tuple[str, Tensor]]) -> int:
    """Gives vLLM all weights, and returns how many of its parameters were compared by checksum.

    No more than one buffer of them is in memory besides. Raises EngineError for names that are missing on one side and for
    checksums that differ; GoneError when vLLM has died.
    """
    await process.call("begin")
    problems: list[str] = []
    buffer: Buffer | None = None
    for name, value in weights:
        if buffer is None or not buffer.fits(value):
            problems += await _flush(process, buffer)
            if buffer is None or not buffer.fits(value):
                buffer = await _opened(process, max(SIZE, value.nbytes))
        buffer.put(name, value)
    problems += await _flush(process, buffer)
    found, compared = await process.call("finish")
    problems += found
    if problems:
        more = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise EngineError(
            "rollout.engine: vLLM's weights are not the policy's (names are those of the family's `engine_names`): "
            + "; ".join(problems[:SHOWN])
            + more
        )
    return compared


async def _flush(process: Any, buffer: Buffer | None) -> list[str]:
    if buffer is None:
        return []
    problems: list[str] = await process.call("load", [entry.plain() for entry in buffer.take()])
    return problems


async def _opened(process: Any, size: int) -> Buffer:
    buffer = Buffer(size)
    try:
        await process.call("open", str(buffer.path), size)
    finally:
        buffer.unlink()
    return buffer
