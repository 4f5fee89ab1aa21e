"""Sizes and configurations of tiny Qwen checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evr1_core.api import PatchGrid

INITIALIZER_RANGE = 0.1  # the default of 0.02 makes the residuals of a narrow model so weak that it learns many times slower
SIZES = {"width": 128, "layers": 2, "vision_width": 128, "vision_layers": 2, "vocab": 512}
HEAD_DIM = 32  # vLLM on a CPU refuses 16
SECTIONS = [6, 5, 5]  # rotary frequencies of time, height and width: half a head

TOKEN_NAMES = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}


def token_ids(tokenizer: Any) -> dict[str, int]:
    """The ids that configurations name."""
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in TOKEN_NAMES.items()}


def text_config(tokenizer: Any, size: Mapping[str, int]) -> dict[str, Any]:
    """What the text parts of all families have in common: heads of 32, half as many of them for keys."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": size["width"],
        "intermediate_size": 3 * size["width"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["width"] // HEAD_DIM,
        "num_key_value_heads": max(1, size["width"] // (2 * HEAD_DIM)),
        "max_position_embeddings": 32768,
        "initializer_range": INITIALIZER_RANGE,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": SECTIONS},
    }


def vision_config(grid: PatchGrid, size: Mapping[str, int]) -> dict[str, Any]:
    """What the vision towers of all families have in common."""
    return {
        "depth": size["vision_layers"],
        "num_heads": 4,
        "patch_size": grid.patch,
        "spatial_merge_size": grid.merge,
        "temporal_patch_size": grid.temporal,
        "initializer_range": INITIALIZER_RANGE,
    }


def pixel_processors(grid: PatchGrid, video_processor: Any) -> dict[str, Any]:
    """Image and video processors, as arguments of the family's processor. All families share the class for images."""
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

    pixels = {"patch_size": grid.patch, "merge_size": grid.merge, "temporal_patch_size": grid.temporal}
    scale = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    return {
        "image_processor": Qwen2VLImageProcessor(**pixels, **scale),
        "video_processor": video_processor(**pixels, **scale),
    }
