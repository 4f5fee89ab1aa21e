"""Qwen2.5-VL (arXiv:2502.13923): a video is one block of tokens, its steps as far apart in position as they are in time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import define, field, validators
from torch import Tensor, nn

from evr1_core.api import Encoded, ModelError, PatchGrid, tiny
from evr1_plugins.models import _mrope, _tiny
from evr1_plugins.models._qwen import QwenVL


@define(kw_only=True)
class Qwen2_5VL(QwenVL):
    """Qwen2.5-VL: patches of 14 pixels merged 2 x 2, two frames a temporal step, boxes in pixels of the frame it sees."""

    api = 1
    model_types = frozenset({"qwen2_5_vl"})
    grid = PatchGrid(patch=14, merge=2, temporal=2)
    box_kind = "resized"
    time = "positions"

    past_time: bool = field(default=False, metadata={"help": _mrope.PAST_TIME})
    tokens_per_second: int = field(
        default=2, validator=validators.gt(0), metadata={"help": "positions a second of video; the checkpoint must have the same"}
    )

    def load(self, folder: str, *, dtype: str = "float32") -> nn.Module:
        module: Any = super().load(folder, dtype=dtype)
        theirs = module.config.vision_config.tokens_per_second
        if theirs != self.tokens_per_second:
            raise ModelError(
                f"{folder}: the model has {theirs} tokens_per_second, not {self.tokens_per_second}; "
                f"set model.family.options.tokens_per_second: {theirs}"
            )
        return module

    def position_ids(self, encoded: Encoded) -> Tensor:
        shortest = min(encoded.seconds_per_step, default=1.0)
        if shortest * self.tokens_per_second < 1:
            warnings.warn(f"steps of a video are {shortest:g} s apart, so some share a position: sample fewer frames", stacklevel=2)
        blocks = _mrope.whole_clips(encoded, self.grid.merge, self.tokens_per_second)
        return _mrope.positions(encoded.token_kind, blocks, past_time=self.past_time)

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers``, ``vision_width``, ``vision_layers``, ``vocab``."""
        from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor
        from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

        size = _tiny.SIZES | sizes
        tokenizer = tiny.train_tokenizer(corpus, size["vocab"])
        vision = _tiny.vision_config(self.grid, size) | {
            "hidden_size": size["vision_width"],
            "intermediate_size": 2 * size["vision_width"],
            "out_hidden_size": size["width"],
            "fullatt_block_indexes": [size["vision_layers"] - 1],
            "window_size": 4 * self.grid.factor,
            "tokens_per_second": self.tokens_per_second,
        }
        config = Qwen2_5_VLConfig(
            text_config=_tiny.text_config(tokenizer, size),
            vision_config=vision,
            tie_word_embeddings=False,
            **_tiny.token_ids(tokenizer),
        )
        torch.manual_seed(seed)
        processor = Qwen2_5_VLProcessor(
            **_tiny.pixel_processors(self.grid, Qwen2VLVideoProcessor), tokenizer=tokenizer, chat_template=tiny.CHAT_TEMPLATE
        )
        tiny.save(folder, Qwen2_5_VLForConditionalGeneration(config), processor)
