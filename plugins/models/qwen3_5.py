"""Qwen3.5: prompts as in Qwen3-VL, and a text part whose layers keep a recurrent state, but for every fourth (arXiv:2412.06464)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import define
from torch import Tensor

from evr1_core.api import Encoded, ModelBatch, PatchGrid, tiny
from evr1_plugins.models import _mrope, _tiny
from evr1_plugins.models._qwen import QwenVL


@define(kw_only=True)
class Qwen3_5(QwenVL):
    """Qwen3.5, dense: patches of 16 pixels merged 2 x 2, two frames a temporal step, boxes in 0 to 1000, thinking opened.

    A recurrent state holds all that came before: rows with several responses behind one prompt would mix them, so training computes
    separate rows.
    """

    api = 1
    model_types = frozenset({"qwen3_5"})
    grid = PatchGrid(patch=16, merge=2, temporal=2)
    box_kind = "norm1000"
    time = "text"
    shared_prefix = False

    def position_ids(self, encoded: Encoded) -> Tensor:
        return _mrope.positions(encoded.token_kind, _mrope.single_steps(encoded, self.grid.merge))

    def masks(self, batch: ModelBatch) -> Any:
        """Full attention sees by query and key; recurrent layers only need to know which tokens are padding."""
        if batch.valid is None or bool(batch.valid.all()):
            return batch.attention_mask
        return {"full_attention": batch.attention_mask, "linear_attention": batch.valid}

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers`` (the last has full attention), ``vision_width``, ``vision_layers``, ``vocab``."""
        from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration, Qwen3VLProcessor
        from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

        size = _tiny.SIZES | sizes
        tokenizer = tiny.train_tokenizer(corpus, size["vocab"])
        text = _tiny.text_config(tokenizer, size) | {
            "head_dim": _tiny.HEAD_DIM,
            "layer_types": ["linear_attention"] * (size["layers"] - 1) + ["full_attention"],
            "linear_num_key_heads": 1,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 128,  # vLLM on a CPU refuses 16 and 32
            "linear_value_head_dim": 128,
        }
        text["rope_parameters"] |= {"mrope_interleaved": True, "partial_rotary_factor": 1.0}
        vision = _tiny.vision_config(self.grid, size) | {
            "hidden_size": size["vision_width"],
            "intermediate_size": 2 * size["vision_width"],
            "out_hidden_size": size["width"],
            "num_position_embeddings": 64,
        }
        config = Qwen3_5Config(text_config=text, vision_config=vision, tie_word_embeddings=False, **_tiny.token_ids(tokenizer))
        torch.manual_seed(seed)
        model = Qwen3_5ForConditionalGeneration(config)
        torch.nn.init.normal_(model.model.visual.pos_embed.weight)  # as in Qwen3-VL
        processor = Qwen3VLProcessor(
            **_tiny.pixel_processors(self.grid, Qwen3VLVideoProcessor), tokenizer=tokenizer, chat_template=tiny.THINKING_TEMPLATE
        )
        tiny.save(folder, model, processor)
