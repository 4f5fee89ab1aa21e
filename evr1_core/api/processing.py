"""Prompts through a checkpoint's own Hugging Face processor: chat text, model inputs, lengths, and what an engine takes.

The frame cache has sized and sampled the frames, so the processor is told to do neither. Nothing of it is written anew here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evr1_core.api.clips import Clip, PatchGrid, VideoMetadata
from evr1_core.api.errors import ModelError
from evr1_core.api.samples import Kind, Prompt

if TYPE_CHECKING:
    from torch import Tensor

TEXT, IMAGE, VIDEO = 0, 1, 2  # values of Encoded.token_kind
KINDS: dict[Kind, int] = {"image": IMAGE, "video": VIDEO}


def render(processor: Any, prompt: Prompt) -> str:
    """Chat text with one placeholder a medium, through the checkpoint's own template. Raises ModelError when the words of the
    prompt hold a placeholder themselves: it would take another medium's place."""
    tokens = placeholders(processor)
    words = [prompt.system, *(part for part in prompt.parts if isinstance(part, str))]
    for token in tokens.values():
        if any(token in each for each in words):
            raise ModelError(f"the text of the prompt holds {token}, which stands for a medium; take it out of the record")
    content = [{"type": "text", "text": part} if isinstance(part, str) else {"type": part.kind} for part in prompt.parts]
    messages = [{"role": "user", "content": content}]
    if prompt.system:
        messages.insert(0, {"role": "system", "content": [{"type": "text", "text": prompt.system}]})
    text: str = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text


def opens_thinking(processor: Any) -> bool:
    """The template's assistant turn begins inside an open reasoning block."""
    return render(processor, Prompt(parts=("?",))).rstrip().endswith("<think>")


def placeholders(processor: Any) -> dict[Kind, str]:
    """The token that stands for a medium in chat text, by kind."""
    return {"image": processor.image_token, "video": processor.video_token}


def processor_metadata(meta: VideoMetadata, temporal: int) -> dict[str, Any]:
    """A record from which processors and engines compute the kept frames' true times.

    They take a frame's time as index / fps and the sampled rate as kept / total x fps, which is wrong for spans and variable rates.
    In milliseconds, at 1,000 indices a second, the same formulas give the presentation times and the rate within the span. A last
    frame that was repeated to fill its temporal patch of ``temporal`` frames counts once, as in a video of an odd number of frames.
    The list is fresh: a processor may extend it in place.
    """
    kept = len(meta.indices)
    least = kept - temporal + 1
    while kept > max(least, 1) and meta.indices[kept - 1] == meta.indices[kept - 2]:
        kept -= 1
    return {
        "fps": 1000.0,
        "frames_indices": [round(1000 * time) for time in meta.times[:kept]],
        "total_num_frames": max(1, round(1000 * meta.duration)),
        "duration": meta.duration,
        "height": meta.height,
        "width": meta.width,
        "video_backend": "evr1",
    }


def processed(processor: Any, text: str, clips: Sequence[Clip], grid: PatchGrid) -> Any:
    """All that the processor gives for one prompt. Raises ModelError when placeholders and media differ in number."""
    _check_media(processor, text, clips)
    return processor(
        text=[text],
        images=[clip.frames[0] for clip in clips if clip.meta is None] or None,
        videos=[clip.frames for clip in clips if clip.meta is not None] or None,
        video_metadata=[processor_metadata(clip.meta, grid.temporal) for clip in clips if clip.meta is not None] or None,
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
    )


def token_kinds(processor: Any, input_ids: Tensor) -> Tensor:
    """int8, the shape of ``input_ids``: 0 text, 1 image, 2 video."""
    import torch

    kinds = torch.full_like(input_ids, TEXT, dtype=torch.int8)
    kinds[input_ids == processor.image_token_id] = IMAGE
    kinds[input_ids == processor.video_token_id] = VIDEO
    return kinds


def patches_in_order(out: Any, kinds: Sequence[Kind]) -> tuple[Tensor, Tensor]:
    """Patches and grids of images and videos, merged into their order of appearance."""
    import torch

    streams = {}
    for kind, pixels, grids in (("image", "pixel_values", "image_grid_thw"), ("video", "pixel_values_videos", "video_grid_thw")):
        if kind in kinds:
            grid = out[grids]
            streams[kind] = iter(zip(out[pixels].split(grid.prod(-1).tolist()), grid, strict=True))
    pairs = [next(streams[kind]) for kind in kinds]
    return torch.cat([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])


def grid_of(clip: Clip, grid: PatchGrid) -> tuple[int, int, int]:
    """(steps, rows, columns) of a clip in patches."""
    count, _, height, width = clip.frames.shape
    return -(-count // grid.temporal), height // grid.patch, width // grid.patch


def prompt_length(processor: Any, text: str, clips: Sequence[Clip], grid: PatchGrid) -> int:
    """Tokens of a prompt, visual ones included, from sizes and time records alone: no pixel is read.

    The processor expands the text as if each step of a medium were one token, and the rest is counted. Raises ModelError as
    :func:`processed` does.
    """
    import torch
    from transformers.video_utils import VideoMetadata as Record

    _check_media(processor, text, clips)
    grids = [grid_of(clip, grid) for clip in clips]
    small = torch.tensor([[steps, grid.merge, grid.merge] for steps, _, _ in grids])
    expansions: dict[Kind, list[str]] = {"image": [], "video": []}
    for number, clip in enumerate(clips):
        inputs: dict[str, Any] = {f"{clip.kind}_grid_thw": small[number : number + 1]}
        if clip.meta is None:
            expansions["image"].append(processor.replace_image_token(inputs, 0))
        else:
            inputs["video_metadata"] = [Record(**processor_metadata(clip.meta, grid.temporal))]
            expansions["video"].append(processor.replace_video_token(inputs, 0))
    [expanded], _ = processor.get_text_with_replacements([text], expansions["image"], expansions["video"])
    left_out = sum(steps * (rows * columns // grid.merge**2 - 1) for steps, rows, columns in grids)
    return len(processor.tokenizer(expanded)["input_ids"]) + left_out


def engine_media(clips: Sequence[Clip], grid: PatchGrid) -> dict[Kind, list[Any]]:
    """Media as inference engines take them, by kind: an image as a PIL image, a video as (uint8 array ``[T, H, W, C]``, record)."""
    from PIL import Image

    media: dict[Kind, list[Any]] = {}
    for clip in clips:
        frames = clip.frames.permute(0, 2, 3, 1).contiguous().numpy()
        if clip.meta is None:
            media.setdefault("image", []).append(Image.fromarray(frames[0]))
        else:
            record = processor_metadata(clip.meta, grid.temporal) | {"do_sample_frames": False}
            media.setdefault("video", []).append((frames, record))
    return media


def _check_media(processor: Any, text: str, clips: Sequence[Clip]) -> None:
    for kind, token in placeholders(processor).items():
        named, given = text.count(token), sum(clip.kind == kind for clip in clips)
        if named != given:
            raise ModelError(f"{named} {kind} placeholders in the text and {given} {kind}s")
