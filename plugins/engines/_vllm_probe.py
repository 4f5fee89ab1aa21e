"""Whether an engine understands prompts as training does, asked before anything is sampled."""

from __future__ import annotations

from typing import Any

import torch

from evr1_core.api import Clip, EngineInput, Media, ModelError, ModelFamily, Prompt, VideoMetadata

FRAMES = 8  # longer in time than in space: there families and engines differ


async def compare(process: Any, family: ModelFamily, processor: Any) -> None:
    """Raises ModelError when token ids or positions of a prompt with a small video are not those of training."""
    clip = _film(family)
    text = family.render(processor, Prompt(parts=(Media(kind="video", path="probe"), "What happens?")), [clip])
    given: EngineInput = family.engine_input(text, [clip])
    tokens, positions = await process.call("positions", given)
    encoded = family.encode(processor, text, [clip])
    ours = encoded.input_ids.tolist()
    if tokens != ours:
        raise ModelError(f"vLLM makes other tokens of a prompt than training does: {len(tokens)} and {len(ours)}")
    if positions != family.position_ids(encoded).tolist():
        raise ModelError(
            "vLLM places the text behind a video elsewhere than training does. The Qwen2 families have an option for it: "
            "model.family.options.past_time: true (see docs/models.md, `Where text goes on behind a video`)"
        )


def _film(family: ModelFamily) -> Clip:
    side = 2 * family.grid.factor
    times = tuple(number / 2 for number in range(FRAMES))
    meta = VideoMetadata(
        fps=2.0,
        total_frames=FRAMES,
        duration=FRAMES / 2,
        indices=tuple(range(FRAMES)),
        times=times,
        height=side,
        width=side,
        source_height=side,
        source_width=side,
    )
    return Clip(frames=torch.zeros(FRAMES, 3, side, side, dtype=torch.uint8), meta=meta)
