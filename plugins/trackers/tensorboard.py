"""Metrics for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from evr1_core.api import PluginError, Tracker


@define(kw_only=True)
class TensorBoard(Tracker):
    """Event files in ``tensorboard/`` of the run folder; needs the extra ``trackers``."""

    api = 1

    _writer: Any = field(default=None, init=False)

    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PluginError(
                "trackers/tensorboard needs tensorboard: pip install 'evr1[trackers]', or leave it out of log.trackers"
            ) from error
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
