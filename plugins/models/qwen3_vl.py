"""Qwen3-VL (arXiv:2511.21631): time written between frames, features added to the first text layers (arXiv:2406.04334)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import define
from torch import Tensor, nn

from evr1_core.api import Clip, Encoded, ModelBatch, ModelError, ModelFamily, PatchGrid, Prompt, VisionFeatures
from evr1_plugins.models import _inputs, _mrope, _patches, _tiny


@define(kw_only=True)
class Qwen3VL(ModelFamily):
    """Qwen3-VL, dense: patches of 16 pixels merged 2 x 2, two frames a temporal step, boxes in 0 to 1000."""

    api = 1
    model_types = frozenset({"qwen3_vl"})
    grid = PatchGrid(patch=16, merge=2, temporal=2)
    box_kind = "norm1000"

    def load(self, folder: str, *, dtype: str = "float32") -> nn.Module:
        from transformers import AutoModelForImageTextToText

        module = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
        _patches.as_product(module.model.visual)
        return module

    def banned_ids(self, processor: Any) -> frozenset[int]:
        return frozenset({processor.image_token_id, processor.video_token_id, processor.vision_start_token_id})

    def opens_thinking(self, processor: Any) -> bool:
        return _inputs.opens_thinking(processor)

    def render(self, processor: Any, prompt: Prompt, clips: Sequence[Clip]) -> str:
        return _inputs.render(processor, prompt)

    def encode(self, processor: Any, text: str, clips: Sequence[Clip]) -> Encoded:
        return _inputs.encode(processor, text, clips)

    def position_ids(self, encoded: Encoded) -> Tensor:
        grids = [] if encoded.grid_thw is None else _mrope.per_frame(encoded.grid_thw, encoded.media_kinds)
        return _mrope.positions(encoded.token_kind, grids, self.grid.merge)

    def vision(self, model: nn.Module, patches: Tensor, grid_thw: Tensor) -> VisionFeatures:
        visual: Any = model.get_submodule("model.visual")
        out = visual(patches.to(visual.dtype), grid_thw=grid_thw)
        return VisionFeatures(embeds=out.pooler_output, deepstack=tuple(out.deepstack_features))

    def forward(self, model: nn.Module, batch: ModelBatch, vision: VisionFeatures | None) -> Tensor:
        text: Any = model.get_submodule("model.language_model")
        embeds = text.embed_tokens(batch.input_ids)
        visual_mask = batch.token_kind > 0
        if vision is not None:
            if int(visual_mask.sum()) != vision.embeds.shape[0]:
                raise ModelError(
                    f"{int(visual_mask.sum())} visual tokens and {vision.embeds.shape[0]} vision features in one batch"
                )
            embeds = embeds.masked_scatter(visual_mask.unsqueeze(-1), vision.embeds.to(embeds.dtype))
        out = text(
            inputs_embeds=embeds,
            position_ids=batch.position_ids,
            attention_mask=batch.attention_mask,
            past_key_values=batch.cache,
            use_cache=batch.cache is not None,
            visual_pos_masks=visual_mask if vision is not None else None,
            deepstack_visual_embeds=list(vision.deepstack) if vision is not None else None,
        )
        return out.last_hidden_state

    def head(self, model: nn.Module) -> nn.Module:
        return model.get_submodule("lm_head")

    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Sizes: ``width``, ``layers``, ``vision_width``, ``vision_layers``, ``vocab``."""
        from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
        from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
        from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

        size = {"width": 128, "layers": 2, "vision_width": 128, "vision_layers": 2, "vocab": 512} | sizes
        tokenizer = _tiny.train_tokenizer(corpus, size["vocab"])
        ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in _tiny.TOKEN_NAMES.items()}
        config = Qwen3VLConfig(
            text_config={
                "vocab_size": len(tokenizer),
                "hidden_size": size["width"],
                "intermediate_size": 3 * size["width"],
                "num_hidden_layers": size["layers"],
                "num_attention_heads": size["width"] // 32,
                "num_key_value_heads": size["width"] // 64,
                "head_dim": 32,
                "max_position_embeddings": 32768,
                "initializer_range": _tiny.INITIALIZER_RANGE,
                "rope_parameters": {
                    "rope_type": "default",
                    "rope_theta": 10000.0,
                    "mrope_section": [6, 5, 5],
                    "mrope_interleaved": True,
                },
            },
            vision_config={
                "depth": size["vision_layers"],
                "hidden_size": size["vision_width"],
                "intermediate_size": 2 * size["vision_width"],
                "num_heads": 4,
                "out_hidden_size": size["width"],
                "patch_size": self.grid.patch,
                "spatial_merge_size": self.grid.merge,
                "temporal_patch_size": self.grid.temporal,
                "num_position_embeddings": 64,
                "deepstack_visual_indexes": [0],
                "initializer_range": _tiny.INITIALIZER_RANGE,
            },
            tie_word_embeddings=False,
            **ids,
        )
        torch.manual_seed(seed)
        model = Qwen3VLForConditionalGeneration(config)
        torch.nn.init.normal_(model.model.visual.pos_embed.weight)  # as large as patches: where is learned as fast as what
        _tiny.set_generation(model, tokenizer)
        pixels = {"patch_size": self.grid.patch, "merge_size": self.grid.merge, "temporal_patch_size": self.grid.temporal}
        processor = Qwen3VLProcessor(
            image_processor=Qwen2VLImageProcessor(**pixels, image_mean=[0.5] * 3, image_std=[0.5] * 3),
            video_processor=Qwen3VLVideoProcessor(**pixels, image_mean=[0.5] * 3, image_std=[0.5] * 3),
            tokenizer=tokenizer,
            chat_template=_tiny.CHAT_TEMPLATE,
        )
        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
