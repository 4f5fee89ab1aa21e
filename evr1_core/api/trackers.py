"""The base class of trackers: where metrics and sampled responses go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from attrs import define


@define(kw_only=True)
class Tracker(ABC):
    """Receives metrics. A plugin is an attrs class; its fields are its options."""

    api: ClassVar[int]

    @abstractmethod
    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        """The run begins; ``folder`` is the run folder."""

    @abstractmethod
    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The metrics of one step, under the names of ``docs/metrics.md``."""

    def rows(self, step: int, name: str, table: Sequence[Mapping[str, Any]]) -> None:
        """A table, such as sampled responses with their rewards."""

    def close(self) -> None:
        """The run is over, whatever its end; everything must be on disk afterwards."""
