"""What a person sees while a run goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, validators
from rich.console import Console as Terminal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from evr1_core.api import Tracker

SHOWN = {  # key: short name
    "critic/score/mean": "reward",
    "reward/accuracy": "accuracy",
    "actor/pg_loss": "loss",
    "actor/entropy": "entropy",
    "response_length/mean": "length",
    "val/accuracy": "val accuracy",
}


@define(kw_only=True)
class Console(Tracker):
    """A progress bar with reward, lengths and time left; plain lines where the output is no terminal; a table at the end."""

    api = 1

    every: int = field(default=10, validator=validators.gt(0), metadata={"help": "steps between plain lines"})
    _terminal: Terminal = field(factory=Terminal, init=False)
    _progress: Any = field(default=None, init=False)
    _task: Any = field(default=None, init=False)
    _total: int = field(default=0, init=False)
    _folder: Path = field(default=Path(), init=False)
    _started: float = field(default=0.0, init=False)
    _first: dict[str, float] = field(factory=dict, init=False)
    _last: dict[str, float] = field(factory=dict, init=False)
    _seconds: dict[str, float] = field(factory=dict, init=False)

    def start(self, config: Mapping[str, Any], folder: Path, total_steps: int) -> None:
        self._total, self._folder, self._started = total_steps, folder, time.monotonic()
        self._terminal.print(f"run folder: {folder}", highlight=False, markup=False, soft_wrap=True)
        if self._terminal.is_terminal:
            self._progress = Progress(
                TextColumn("step"),
                MofNCompleteColumn(),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self._terminal,
            )
            self._task = self._progress.add_task("", total=total_steps)
            self._progress.start()

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._first.setdefault(name, value)
            self._last[name] = value
            if name.startswith("timing_s/"):
                self._seconds[name] = self._seconds.get(name, 0.0) + value
        text = "  ".join(f"{short} {metrics[name]:.3f}" for name, short in SHOWN.items() if name in metrics)
        if self._progress is not None:
            self._progress.update(self._task, completed=step, description=text)
        elif step % self.every == 0 or step == self._total or "val/accuracy" in metrics:
            self._terminal.print(f"step {step}/{self._total}  {text}  {self._left(step)}", highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        if self._last:
            self._terminal.print(self._table())
            self._terminal.print(f"results: {self._folder}", highlight=False, markup=False, soft_wrap=True)

    def _left(self, step: int) -> str:
        if not step:
            return ""
        seconds = (time.monotonic() - self._started) / step * (self._total - step)
        return f"{seconds / 60:.1f} min left" if seconds >= 60 else f"{seconds:.0f} s left"

    def _table(self) -> Table:
        table = Table(title="first and last values")
        for title in ("metric", "first", "last"):
            table.add_column(title, justify="left" if title == "metric" else "right")
        wanted = [name for name in self._last if name in SHOWN or (name.startswith("val/") and name.endswith("/accuracy"))]
        for name in wanted:
            table.add_row(name, f"{self._first[name]:.4g}", f"{self._last[name]:.4g}")
        total = self._seconds.get("timing_s/step", 0.0)
        for name, seconds in self._seconds.items():
            share = f"{seconds / total:.0%}" if total else ""
            table.add_row(name.replace("timing_s/", "seconds: "), f"{seconds:.1f}", share)
        return table
