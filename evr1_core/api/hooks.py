"""Events of a run that listeners (entry points of the group ``evr1.hooks``) can react to, through pluggy.

A listener is a module with ``api = 1`` and functions marked ``@hookimpl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from evr1_core.api.algorithms import ScoreBatch
    from evr1_core.api.samples import Sample

hookspec = pluggy.HookspecMarker("evr1")
hookimpl = pluggy.HookimplMarker("evr1")


@hookspec
def evr1_run_started(config: Mapping[str, Any], folder: Path) -> None:
    """The resolved configuration is known and the run folder exists; nothing was loaded yet."""


@hookspec
def evr1_drop_samples(samples: Sequence[Sample], split: str) -> set[str] | None:
    """Name the samples, by uid, to leave out of ``split`` (``train`` or ``val``)."""


@hookspec
def evr1_drop_groups(step: int, batch: ScoreBatch) -> set[int] | None:
    """Name the groups, by ``batch.group_ids``, not to be trained on in this step."""


@hookspec
def evr1_step_ended(step: int, metrics: Mapping[str, float]) -> None:
    """A training step is over; ``metrics`` are what the trackers get."""


@hookspec
def evr1_checkpoint_saved(step: int, folder: Path) -> None:
    """A loadable model folder was written."""


@hookspec
def evr1_benchmark_scored(name: str, rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    """A benchmark was evaluated: its rows without the responses, and its summary as in ``results.json``."""


@hookspec
def evr1_run_ended(error: BaseException | None) -> None:
    """The run is over; ``error`` is None when it ended as planned."""
