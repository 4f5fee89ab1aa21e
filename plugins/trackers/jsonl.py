"""Metrics and sampled responses as files in the run folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from evr1_core.api import Tracker


@define(kw_only=True)
class JsonLines(Tracker):
    """``metrics.jsonl``: one line a step, flushed at once; a value that is not finite is ``null``.

    Tables become ``samples/NAME-STEP.txt``, for people to read, and ``samples/NAME-STEP.jsonl``.
    """

    api = 1

    _folder: Path = field(default=Path(), init=False)
    _file: TextIO | None = field(default=None, init=False)

    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        self._folder = folder
        self._file = (folder / "metrics.jsonl").open("a", encoding="utf-8")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        assert self._file is not None
        finite = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        self._file.write(json.dumps({"step": step, **finite}) + "\n")
        self._file.flush()

    def rows(self, step: int, name: str, table: Sequence[Mapping[str, Any]]) -> None:
        path = self._folder / "samples" / f"{name}-{step}"
        path.parent.mkdir(exist_ok=True)
        _write(path.with_suffix(".txt"), "\n".join(_readable(row) for row in table))
        _write(path.with_suffix(".jsonl"), "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in table))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _readable(row: Mapping[str, Any]) -> str:
    """One row: a line for each value, long texts indented below their names."""
    lines = []
    for name, value in row.items():
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n    " + text.replace("\n", "\n    "))
    return "\n".join([*lines, "-" * 80, ""])


def _write(path: Path, text: str) -> None:
    """The whole file or none; text that is no valid Unicode is written with escapes."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    temporary.replace(path)
