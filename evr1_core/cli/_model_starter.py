"""What ``evr1 new model`` writes: a family with an architecture of its own, whole enough to be trained, and its test."""

MODEL = '''\
"""The model family %name%: everything that evr1 needs to know about one architecture.

As written it serves a made-up one, at the end of this file: one matrix makes a token of each merged patch, and a Llama reads them.
For an architecture that Transformers knows, remove that part and change what the class below says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import define
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    GenerationMixin,
    LlamaConfig,
    LlamaModel,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2VLProcessor,
)
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from transformers.models.qwen2_vl.video_processing_qwen2_vl import Qwen2VLVideoProcessor

from evr1_core.api import Encoded, ModelBatch, ModelError, ModelFamily, PatchGrid, VisionFeatures, tiny


@define(kw_only=True)
class %cls%(ModelFamily):
    """%cls%: patches of 14 pixels merged 2 x 2, two frames a temporal step, boxes in 0 to 1000."""

    api = 1
    model_types = frozenset({"%name%"})  # values of "model_type" in config.json
    grid = PatchGrid(patch=14, merge=2, temporal=2)
    box_kind = "norm1000"  # or "resized": pixels of the frame that the model sees
    time = "none"  # or "positions", "text": how it learns when frames were shown

    def banned_ids(self, processor: Any) -> frozenset[int]:
        names = [processor.image_token, processor.video_token, "<|vision_start|>"]
        return frozenset(processor.tokenizer.convert_tokens_to_ids(names))

    def position_ids(self, encoded: Encoded) -> Tensor:
        return torch.arange(len(encoded.input_ids)).expand(3, -1)  # one axis will do here: time, height and width are the same

    def vision(self, model: nn.Module, patches: Tensor, grid_thw: Tensor) -> VisionFeatures:
        visual: Any = model.get_submodule("visual")
        return VisionFeatures(embeds=visual(patches.reshape(-1, visual.in_features).to(visual.weight.dtype)))

    def forward(self, model: nn.Module, batch: ModelBatch, vision: VisionFeatures | None) -> Tensor:
        text: Any = model.get_submodule("language_model")
        embeds = text.embed_tokens(batch.input_ids)
        if vision is not None:
            places = batch.token_kind > 0
            if int(places.sum()) != len(vision.embeds):
                raise ModelError(f"{int(places.sum())} visual tokens and {len(vision.embeds)} vision features in one batch")
            embeds = embeds.masked_scatter(places.unsqueeze(-1), vision.embeds.to(embeds.dtype))
        out = text(
            inputs_embeds=embeds,
            position_ids=batch.position_ids[0],
            attention_mask=batch.attention_mask,
            past_key_values=batch.cache,
            use_cache=batch.cache is not None,
        )
        return out.last_hidden_state

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers``, ``vocab``."""
        size = {"width": 64, "layers": 2, "vocab": 512} | sizes
        tokenizer = tiny.train_tokenizer(corpus, size["vocab"])
        text = {
            "vocab_size": len(tokenizer),
            "hidden_size": size["width"],
            "intermediate_size": 2 * size["width"],
            "num_hidden_layers": size["layers"],
            "num_attention_heads": size["width"] // 32,
            "initializer_range": 0.1,
            "eos_token_id": tokenizer.eos_token_id,
        }
        torch.manual_seed(seed)
        model = %cls%Model(%cls%Config(text_config=text))
        pixels = {"patch_size": self.grid.patch, "merge_size": self.grid.merge, "temporal_patch_size": self.grid.temporal}
        processor = Qwen2VLProcessor(
            image_processor=Qwen2VLImageProcessor(**pixels),
            video_processor=Qwen2VLVideoProcessor(**pixels),
            tokenizer=tokenizer,
            chat_template=tiny.CHAT_TEMPLATE,
        )
        tiny.save(folder, model, processor)


class %cls%Config(PreTrainedConfig):
    """The made-up architecture's configuration."""

    model_type = "%name%"
    sub_configs = {"text_config": LlamaConfig}

    text_config: Any = None

    def __post_init__(self, **kwargs: Any) -> None:
        if not isinstance(self.text_config, LlamaConfig):
            self.text_config = LlamaConfig(**(self.text_config or {}))
        super().__post_init__(**kwargs)


class %cls%Model(PreTrainedModel, GenerationMixin):
    """The made-up architecture."""

    config_class = %cls%Config
    _no_split_modules = ["LlamaDecoderLayer"]  # what FSDP shards by itself

    def __init__(self, config: %cls%Config) -> None:
        super().__init__(config)
        grid, text = %cls%.grid, config.text_config
        self.visual = nn.Linear(3 * grid.temporal * grid.factor**2, text.hidden_size)
        self.language_model = LlamaModel(text)
        self.lm_head = nn.Linear(text.hidden_size, text.vocab_size, bias=False)
        self.post_init()


AutoConfig.register("%name%", %cls%Config, exist_ok=True)
AutoModelForImageTextToText.register(%cls%Config, %cls%Model, exist_ok=True)
'''

MODEL_TEST = """\
from pathlib import Path

from evr1_core.testing import check_model_family

from %module% import %cls%


def test_contract(tmp_path: Path) -> None:
    check_model_family(%cls%(), tmp_path / "tiny")
"""
