"""Metrics for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import define, field

from evr1_core.api import PluginError, Tracker


@define(kw_only=True)
class TensorBoard(Tracker):
    """Event files in ``tensorboard/`` of the run folder; needs the extra ``trackers``."""

    api = 1

    flush_secs: int = field(default=30, metadata={"help": "seconds until values are on disk at the latest"})
    _writer: Any = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Says that TensorBoard is missing when the run is checked, not when its model is loaded."""
        if find_spec("tensorboard") is None:
            raise PluginError("tensorboard is not installed: pip install 'evr1[trackers]', or leave it out of log.trackers")

    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), flush_secs=self.flush_secs)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
