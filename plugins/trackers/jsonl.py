"""Metrics and sampled responses as files in the run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from evr1_core.api import Tracker


@define(kw_only=True)
class JsonLines(Tracker):
    """``metrics.jsonl``: one line a step, flushed at once. Tables become ``NAME/step-N.txt``, for people to read."""

    api = 1

    _folder: Path = field(default=Path(), init=False)
    _file: TextIO | None = field(default=None, init=False)

    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        self._folder = folder
        self._file = (folder / "metrics.jsonl").open("a", encoding="utf-8")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        assert self._file is not None
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")
        self._file.flush()

    def rows(self, step: int, name: str, table: Sequence[Mapping[str, Any]]) -> None:
        path = self._folder / name / f"step-{step}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(_readable(row) for row in table), encoding="utf-8")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _readable(row: Mapping[str, Any]) -> str:
    """One row: a line for each value, long texts indented below their names."""
    lines = []
    for name, value in row.items():
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n    " + text.replace("\n", "\n    "))
    return "\n".join([*lines, "-" * 80, ""])
