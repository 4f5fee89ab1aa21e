"""The base class of model families: everything evr1 needs to know about one architecture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attrs import define, field, frozen

from evr1_core.api.clips import Clip, PatchGrid
from evr1_core.api.samples import Kind, Prompt

if TYPE_CHECKING:
    from torch import Tensor, nn

TEXT, IMAGE, VIDEO = 0, 1, 2  # values of Encoded.token_kind


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
    ``cache``: keys and values of earlier tokens, extended in place."""

    input_ids: Tensor
    position_ids: Tensor
    token_kind: Tensor
    attention_mask: Tensor | None = None
    cache: Any = None


@frozen(kw_only=True)
class EngineInput:
    """One prompt as an inference engine takes it: unexpanded ``text``, media by kind, and arguments for the engine's processor."""

    text: str
    media: Mapping[Kind, Sequence[Any]] = field(factory=dict)
    processor_kwargs: Mapping[str, Any] = field(factory=dict)


@define(kw_only=True)
class ModelFamily(ABC):
    """One architecture. A plugin is an attrs class; its fields are its options.

    ``model_types``: values of ``model_type`` in ``config.json``. ``box_kind``: the space in which the family names boxes.
    ``prompt_style``: which prompt templates suit it. ``shared_prefix``: a prompt may be computed once for several responses.
    """

    api: ClassVar[int]
    model_types: ClassVar[frozenset[str]]
    grid: ClassVar[PatchGrid]
    box_kind: ClassVar[Literal["norm1000", "resized"]]
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
    def load(self, folder: str, *, dtype: str = "float32") -> nn.Module:
        """The model of a folder, through Transformers' Auto classes."""

    @abstractmethod
    def opens_thinking(self, processor: Any) -> bool:
        """The chat template ends inside an open ``<think>``."""

    @abstractmethod
    def render(self, processor: Any, prompt: Prompt, clips: Sequence[Clip]) -> str:
        """Chat text up to the assistant's turn, with one unexpanded placeholder a medium."""

    @abstractmethod
    def encode(self, processor: Any, text: str, clips: Sequence[Clip]) -> Encoded:
        """Token ids and patches, through the family's Hugging Face processor with resizing and frame sampling off."""

    @abstractmethod
    def position_ids(self, encoded: Encoded) -> Tensor:
        """int64 ``[3, S]``: time, height, width. The next text token stands at ``position_ids.max() + 1`` on all three axes."""

    @abstractmethod
    def vision(self, model: nn.Module, patches: Tensor, grid_thw: Tensor) -> VisionFeatures:
        """One pass of the vision tower over all media of a batch."""

    @abstractmethod
    def forward(self, model: nn.Module, batch: ModelBatch, vision: VisionFeatures | None) -> Tensor:
        """Hidden states ``[B, S, D]`` of the text part, with the vision features in their places."""

    @abstractmethod
    def head(self, model: nn.Module) -> nn.Module:
        """Hidden states to logits; applied to chosen positions only."""
