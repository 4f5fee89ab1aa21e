"""The base class of rollout engines, and what they are asked and give back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attrs import define, frozen

from evr1_core.api.clips import Clip

if TYPE_CHECKING:
    from torch import Tensor, nn

    from evr1_core.api.models import ModelFamily


@frozen(kw_only=True)
class Sampling:
    """How responses are drawn. ``temperature`` 0 is greedy; ``top_k`` -1 and ``top_p`` 1 switch truncation off; ``seed`` makes the
    draw of this request reproducible whatever else is in the batch."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int = 1024
    seed: int | None = None


@frozen(kw_only=True)
class Rollout:
    """One response. ``token_ids`` include the end token when there is one; ``logprobs`` are after temperature and banned ids, one a
    token; ``finish`` is ``length`` when the limit cut it off."""

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish: Literal["stop", "length"]


@frozen(kw_only=True, eq=False)
class Request:
    """One prompt to answer: unexpanded chat text and its clips, in order."""

    uid: str
    text: str
    clips: tuple[Clip, ...]
    sampling: Sampling


@define(kw_only=True)
class RolloutEngine(ABC):
    """Draws responses. A plugin is an attrs class; its fields are its options.

    ``in_process``: it computes in the caller's process with the module that it is given, so that :meth:`generate` takes the thread
    until all requests are answered. Otherwise it may be called again while it works, and serves all calls together.
    """

    api: ClassVar[int]
    in_process: ClassVar[bool] = False

    @property
    def appetite(self) -> int:
        """Requests that keep it busy: so many at a time and a few to follow."""
        return 64

    @abstractmethod
    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        """Gets ready. ``module`` is the live policy when the engine runs in the trainer's process."""

    @abstractmethod
    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        """``sampling.n`` responses for every request, in the order asked."""

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Takes the policy's weights after an update; an engine that shares the live module has nothing to do."""

    async def sleep(self) -> None:
        """Lets go of device memory during the update."""

    async def wake(self) -> None:
        """Takes it back."""

    async def close(self) -> None:
        """Ends processes and threads."""
