"""Chat text and processor inputs, the same for all Qwen vision-language families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from evr1_core.api import IMAGE, TEXT, VIDEO, Clip, Encoded, Prompt, VideoMetadata


def render(processor: Any, prompt: Prompt) -> str:
    """Chat text with one placeholder a medium, through the checkpoint's own template."""
    content = [{"type": "text", "text": part} if isinstance(part, str) else {"type": part.kind} for part in prompt.parts]
    messages = [{"role": "user", "content": content}]
    if prompt.system:
        messages.insert(0, {"role": "system", "content": [{"type": "text", "text": prompt.system}]})
    return processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def opens_thinking(processor: Any) -> bool:
    """The template's assistant turn begins inside an open reasoning block."""
    text = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "text", "text": "?"}]}], tokenize=False, add_generation_prompt=True
    )
    return text.rstrip().endswith("<think>")


def metadata(meta: VideoMetadata) -> dict[str, Any]:
    """A record from which processors compute the kept frames' true times.

    They take a frame's time as index / fps, which is wrong for spans and variable rates. In milliseconds, at 1,000 indices a
    second, the same formula gives the presentation times. The list is fresh: a processor may extend it in place.
    """
    return {
        "fps": 1000.0,
        "frames_indices": [round(1000 * time) for time in meta.times],
        "total_num_frames": max(1, round(1000 * meta.duration)),
        "duration": meta.duration,
        "height": meta.height,
        "width": meta.width,
        "video_backend": "evr1",
    }


def encode(processor: Any, text: str, clips: Sequence[Clip]) -> Encoded:
    """Token ids and patches from the checkpoint's processor; the cache has sized and sampled the frames already."""
    images = [clip.frames[0] for clip in clips if clip.meta is None]
    videos = [clip.frames for clip in clips if clip.meta is not None]
    out = processor(
        text=[text],
        images=images or None,
        videos=videos or None,
        video_metadata=[metadata(clip.meta) for clip in clips if clip.meta is not None] or None,
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
    )
    kinds = tuple(clip.kind for clip in clips)
    input_ids = out["input_ids"][0]
    token_kind = torch.full_like(input_ids, TEXT, dtype=torch.int8)
    token_kind[input_ids == processor.image_token_id] = IMAGE
    token_kind[input_ids == processor.video_token_id] = VIDEO
    patches, grid_thw = _in_order(out, kinds) if kinds else (None, None)
    return Encoded(input_ids=input_ids, token_kind=token_kind, patches=patches, grid_thw=grid_thw, media_kinds=kinds)


def _in_order(out: Any, kinds: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Patches and grids of images and videos, merged into their order of appearance."""
    streams = {}
    for kind, pixels, grids in (("image", "pixel_values", "image_grid_thw"), ("video", "pixel_values_videos", "video_grid_thw")):
        if kind in kinds:
            grid = out[grids]
            streams[kind] = iter(zip(out[pixels].split(grid.prod(-1).tolist()), grid, strict=True))
    pairs = [next(streams[kind]) for kind in kinds]
    return torch.cat([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])
