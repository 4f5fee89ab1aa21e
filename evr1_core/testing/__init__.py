"""Contracts for plugin authors: call one from a test, with an instance of your plugin. Each raises AssertionError with the reason.

``check_tracker``, ``check_reward`` and ``check_benchmark`` need nothing but evr1; the others import torch, and those of engines and
model families Transformers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evr1_core.testing.benchmarks import check_benchmark
from evr1_core.testing.rewards import check_reward
from evr1_core.testing.samples import SAMPLES, sample
from evr1_core.testing.trackers import check_tracker

if TYPE_CHECKING:
    from evr1_core.testing.algorithms import check_algorithm
    from evr1_core.testing.engines import check_engine
    from evr1_core.testing.models import check_model_family

_LAZY = {"check_algorithm": "algorithms", "check_engine": "engines", "check_model_family": "models"}

__all__ = [
    "SAMPLES",
    "check_algorithm",
    "check_benchmark",
    "check_engine",
    "check_model_family",
    "check_reward",
    "check_tracker",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
