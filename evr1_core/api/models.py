"""The base class of model families: everything evr1 needs to know about one architecture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attrs import define, field, frozen

from evr1_core.api import processing
from evr1_core.api.clips import Clip, PatchGrid
from evr1_core.api.errors import ModelError
from evr1_core.api.samples import Kind, Prompt

if TYPE_CHECKING:
    from torch import Tensor, nn


@frozen(kw_only=True, eq=False)
class Encoded:
    """One prompt as the model takes it.

    ``input_ids`` int64 ``[S]``; ``token_kind`` int8 ``[S]``: 0 text, 1 image, 2 video. ``patches`` float ``[N, P]`` and
    ``grid_thw`` int64 ``[M, 3]`` (in patches) hold all media in order of appearance, ``media_kinds`` their kinds.
    ``seconds_per_step``: one value a video, seconds between two temporal steps.
    """

    input_ids: Tensor
    token_kind: Tensor
    patches: Tensor | None = None
    grid_thw: Tensor | None = None
    media_kinds: tuple[Kind, ...] = ()
    seconds_per_step: tuple[float, ...] = ()


@frozen(kw_only=True, eq=False)
class VisionFeatures:
    """What the vision tower gives for all visual tokens of a batch, in order: ``embeds`` ``[F, D]``, and ``deepstack``, features
    added to the first text layers, each ``[F, D]``."""

    embeds: Tensor
    deepstack: tuple[Tensor, ...] = ()


@frozen(kw_only=True, eq=False)
class ModelBatch:
    """Input of the text part. ``input_ids`` int64 ``[B, S]``; ``position_ids`` int64 ``[3, B, S]`` (time, height, width);
    ``token_kind`` int8 ``[B, S]``, 0 on padding; ``attention_mask`` bool ``[B, 1, S, K]``, True where a query (S) sees a key (K);
    ``cache``: keys and values of earlier tokens, extended in place. ``valid`` bool ``[B, S]``, False on padding: families with a
    recurrent state need it where padding stands before tokens, or where the state is kept."""

    input_ids: Tensor
    position_ids: Tensor
    token_kind: Tensor
    attention_mask: Tensor | None = None
    cache: Any = None
    valid: Tensor | None = None


@frozen(kw_only=True)
class EngineInput:
    """One prompt as an inference engine takes it: unexpanded ``text``, media by kind, and arguments for the engine's processor."""

    text: str
    media: Mapping[Kind, Sequence[Any]] = field(factory=dict)
    processor_kwargs: Mapping[str, Any] = field(factory=dict)


@define(kw_only=True)
class ModelFamily(ABC):
    """One architecture. A plugin is an attrs class; its fields are its options.

    ``model_types``: values of ``model_type`` in ``config.json``. ``grid``: how frames are cut. ``box_kind``: the space in which the
    family names boxes. ``time``: how it learns when frames were shown: ``text``, written before each step; ``positions``, steps are
    as far apart as their seconds; ``none``, in their order alone. ``prompt_style``: which prompt templates suit it.
    ``shared_prefix``: a prompt may be computed once for several responses.

    What is not abstract suits a family with a Hugging Face processor and a Transformers model; override what differs.
    """

    api: ClassVar[int]
    model_types: ClassVar[frozenset[str]]
    grid: ClassVar[PatchGrid]
    box_kind: ClassVar[Literal["norm1000", "resized"]]
    time: ClassVar[Literal["none", "positions", "text"]] = "none"
    prompt_style: ClassVar[str] = "think"
    shared_prefix: ClassVar[bool] = True

    @abstractmethod
    def banned_ids(self, processor: Any) -> frozenset[int]:
        """Token ids that must never be sampled: image, video and vision-start."""

    @abstractmethod
    def tiny(self, folder: Path, *, seed: int = 0, corpus: Sequence[str] = (), **sizes: int) -> None:
        """Writes a loadable checkpoint with random weights: model, processor, chat template and a tokenizer trained on ``corpus``.
        ``sizes`` override the family's small defaults."""

    @abstractmethod
    def position_ids(self, encoded: Encoded) -> Tensor:
        """int64 ``[3, S]``: time, height, width. The next text token stands at ``position_ids.max() + 1`` on all three axes."""

    @abstractmethod
    def vision(self, model: nn.Module, patches: Tensor, grid_thw: Tensor) -> VisionFeatures:
        """One pass of the vision tower over all media of a batch."""

    @abstractmethod
    def forward(self, model: nn.Module, batch: ModelBatch, vision: VisionFeatures | None) -> Tensor:
        """Hidden states ``[B, S, D]`` of the text part, with the vision features in their places. Raises ModelError when
        placeholders and features differ in number."""

    def load(self, folder: str, *, dtype: str = "float32") -> nn.Module:
        """The model of a folder, through Transformers' Auto classes. Raises ModelError when it cuts frames unlike ``grid``."""
        import torch
        from transformers import AutoModelForImageTextToText

        module = AutoModelForImageTextToText.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True)
        check_grid(self.grid, module.config, folder)
        return module

    def opens_thinking(self, processor: Any) -> bool:
        """The chat template ends inside an open ``<think>``."""
        return processing.opens_thinking(processor)

    def render(self, processor: Any, prompt: Prompt, clips: Sequence[Clip]) -> str:
        """Chat text up to the assistant's turn, with one unexpanded placeholder a medium."""
        return processing.render(processor, prompt)

    def encode(self, processor: Any, text: str, clips: Sequence[Clip]) -> Encoded:
        """Token ids and patches, through the family's Hugging Face processor with resizing and frame sampling off. Raises
        ModelError when placeholders and media differ in number."""
        out = processing.processed(processor, text, clips, self.grid)
        kinds = tuple(clip.kind for clip in clips)
        patches, grid_thw = processing.patches_in_order(out, kinds) if kinds else (None, None)
        return Encoded(
            input_ids=out["input_ids"][0],
            token_kind=processing.token_kinds(processor, out["input_ids"][0]),
            patches=patches,
            grid_thw=grid_thw,
            media_kinds=kinds,
            seconds_per_step=tuple(map(float, out.get("second_per_grid_ts", ()))),
        )

    def prompt_length(self, processor: Any, text: str, clips: Sequence[Clip]) -> int:
        """Tokens of a prompt, visual ones included, without reading a pixel: the frames of ``clips`` may lie on torch's ``meta``
        device. Raises ModelError as ``encode`` does."""
        return processing.prompt_length(processor, text, clips, self.grid)

    def engine_input(self, text: str, clips: Sequence[Clip]) -> EngineInput:
        """The same prompt for an inference engine: frames as they are, with the time record, neither resized nor sampled again."""
        kwargs = {"do_resize": False} if clips else {}
        return EngineInput(text=text, media=processing.engine_media(clips, self.grid), processor_kwargs=kwargs)

    def engine_names(self, name: str) -> str:
        """Name in an inference engine of the parameter that ``named_parameters`` calls ``name``."""
        return name

    def dummy_patches(self, model: nn.Module) -> tuple[Tensor, Tensor]:
        """Patches and grid of the smallest legal medium, black: a text-only batch runs it through the vision tower at weight 0."""
        import torch

        grid = self.grid
        weight = next(model.parameters())
        patches = weight.new_zeros(grid.merge**2, 3 * grid.temporal * grid.patch**2)
        return patches, torch.tensor([[1, grid.merge, grid.merge]], device=weight.device)

    def shard_units(self, model: nn.Module) -> list[nn.Module]:
        """The modules to be sharded, each by itself: the blocks that Transformers names as not to be split, in order."""
        names = set(getattr(model, "_no_split_modules", None) or ())
        return [module for module in model.modules() if type(module).__name__ in names]

    def head(self, model: nn.Module) -> nn.Module:
        """Hidden states to logits; applied to chosen positions only."""
        return model.get_submodule("lm_head")


def check_grid(grid: PatchGrid, config: Any, folder: str) -> None:
    """Raises ModelError when a checkpoint's vision part says that it cuts frames unlike ``grid``, by which the cache sizes them."""
    vision = getattr(config, "vision_config", None)
    names = {"patch_size": grid.patch, "spatial_merge_size": grid.merge, "temporal_patch_size": grid.temporal}
    wrong = [f"{name} {getattr(vision, name)}, not {ours}" for name, ours in names.items() if getattr(vision, name, ours) != ours]
    if wrong:
        raise ModelError(f"{folder}: the model has {', '.join(wrong)}: it belongs to another model family; name it as model.family")
