"""Qwen3-VL (arXiv:2511.21631): time written between frames, features added to the first text layers (arXiv:2406.04334)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from attrs import define
from torch import Tensor

from evr1_core.api import Encoded, PatchGrid, tiny
from evr1_plugins.models import _mrope, _tiny
from evr1_plugins.models._qwen import QwenVL


@define(kw_only=True)
class Qwen3VL(QwenVL):
    """Qwen3-VL, dense: patches of 16 pixels merged 2 x 2, two frames a temporal step, boxes in 0 to 1000."""

    api = 1
    model_types = frozenset({"qwen3_vl"})
    grid = PatchGrid(patch=16, merge=2, temporal=2)
    box_kind = "norm1000"
    time = "text"

    def position_ids(self, encoded: Encoded) -> Tensor:
        return _mrope.positions(encoded.token_kind, _mrope.single_steps(encoded, self.grid.merge))

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers``, ``vision_width``, ``vision_layers``, ``vocab``."""
        from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
        from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

        size = _tiny.SIZES | sizes
        tokenizer = tiny.train_tokenizer(corpus, size["vocab"])
        text = _tiny.text_config(tokenizer, size) | {"head_dim": _tiny.HEAD_DIM}
        text["rope_parameters"]["mrope_interleaved"] = True
        vision = _tiny.vision_config(self.grid, size) | {
            "hidden_size": size["vision_width"],
            "intermediate_size": 2 * size["vision_width"],
            "out_hidden_size": size["width"],
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        }
        config = Qwen3VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **_tiny.token_ids(tokenizer))
        torch.manual_seed(seed)
        model = Qwen3VLForConditionalGeneration(config)
        torch.nn.init.normal_(model.model.visual.pos_embed.weight)  # as large as patches: where is learned as fast as what
        processor = Qwen3VLProcessor(
            **_tiny.pixel_processors(self.grid, Qwen3VLVideoProcessor), tokenizer=tokenizer, chat_template=tiny.CHAT_TEMPLATE
        )
        tiny.save(folder, model, processor)
