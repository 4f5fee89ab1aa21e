"""What the Qwen vision-language families have in common: where Transformers keeps their parts, and their special tokens."""

from __future__ import annotations

from typing import Any

from attrs import define
from torch import Tensor, nn

from evr1_core.api import ModelBatch, ModelError, ModelFamily, VisionFeatures
from evr1_plugins.models import _patches

BANNED = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>")


@define(kw_only=True)
class QwenVL(ModelFamily):
    """A Qwen vision-language family; a subclass says how it cuts frames, places tokens in time, and what it is made of."""

    def load(self, folder: str, *, dtype: str = "float32") -> nn.Module:
        module = super().load(folder, dtype=dtype)
        _patches.as_product(module.get_submodule("model.visual"))
        return module

    def banned_ids(self, processor: Any) -> frozenset[int]:
        return frozenset(processor.tokenizer.convert_tokens_to_ids(list(BANNED)))

    def vision(self, model: nn.Module, patches: Tensor, grid_thw: Tensor) -> VisionFeatures:
        visual: Any = model.get_submodule("model.visual")
        out = visual(patches.to(visual.dtype), grid_thw=grid_thw)
        return VisionFeatures(embeds=out.pooler_output, deepstack=tuple(getattr(out, "deepstack_features", None) or ()))

    def forward(self, model: nn.Module, batch: ModelBatch, vision: VisionFeatures | None) -> Tensor:
        text: Any = model.get_submodule("model.language_model")
        embeds = text.embed_tokens(batch.input_ids)
        visual = batch.token_kind > 0
        extra: dict[str, Any] = {}
        if vision is not None:
            placeholders = int(visual.sum())
            if placeholders != vision.embeds.shape[0]:
                raise ModelError(f"{placeholders} visual tokens and {vision.embeds.shape[0]} vision features in one batch")
            embeds = embeds.masked_scatter(visual.unsqueeze(-1), vision.embeds.to(embeds.dtype))
            if vision.deepstack:
                extra = {"visual_pos_masks": visual, "deepstack_visual_embeds": list(vision.deepstack)}
        out = text(
            inputs_embeds=embeds,
            position_ids=batch.position_ids,
            attention_mask=self.masks(batch),
            past_key_values=batch.cache,
            use_cache=batch.cache is not None,
            **extra,
        )
        return out.last_hidden_state

    def masks(self, batch: ModelBatch) -> Any:
        """What the text part takes as its attention mask."""
        return batch.attention_mask
