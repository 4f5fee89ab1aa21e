"""Qwen2-VL (arXiv:2409.12191): a video is one block of tokens, its steps one position apart whatever their time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from attrs import define, field
from torch import Tensor

from evr1_core.api import Encoded, PatchGrid, tiny
from evr1_plugins.models import _mrope, _tiny
from evr1_plugins.models._qwen import QwenVL


@define(kw_only=True)
class Qwen2VL(QwenVL):
    """Qwen2-VL: patches of 14 pixels merged 2 x 2, two frames a temporal step, boxes in 0 to 1000."""

    api = 1
    model_types = frozenset({"qwen2_vl"})
    grid = PatchGrid(patch=14, merge=2, temporal=2)
    box_kind = "norm1000"
    time = "none"

    past_time: bool = field(default=False, metadata={"help": _mrope.PAST_TIME})

    def position_ids(self, encoded: Encoded) -> Tensor:
        blocks = _mrope.whole_clips(encoded, self.grid.merge)
        return _mrope.positions(encoded.token_kind, blocks, past_time=self.past_time)

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers``, ``vision_width``, ``vision_layers``, ``vocab``."""
        from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration, Qwen2VLProcessor
        from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

        size = _tiny.SIZES | sizes
        tokenizer = tiny.train_tokenizer(corpus, size["vocab"])
        vision = _tiny.vision_config(self.grid, size) | {
            "embed_dim": size["vision_width"],
            "hidden_size": size["width"],
            "mlp_ratio": 2,
        }
        config = Qwen2VLConfig(
            text_config=_tiny.text_config(tokenizer, size),
            vision_config=vision,
            tie_word_embeddings=False,
            **_tiny.token_ids(tokenizer),
        )
        torch.manual_seed(seed)
        processor = Qwen2VLProcessor(
            **_tiny.pixel_processors(self.grid, Qwen2VLVideoProcessor), tokenizer=tokenizer, chat_template=tiny.CHAT_TEMPLATE
        )
        tiny.save(folder, Qwen2VLForConditionalGeneration(config), processor)
