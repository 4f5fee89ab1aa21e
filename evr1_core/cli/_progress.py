"""How far a long command is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")
LINE_EVERY = 30.0  # seconds


def tracked(results: Iterator[T], total: int, *, doing: str, unit: str) -> Iterator[T]:
    """The same results, with a bar on stderr that shows rate and time left; a log gets a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=total, rate="")
        started = said = time.monotonic()
        for done, result in enumerate(results, 1):
            now = time.monotonic()
            speed = done / max(now - started, 1e-9)
            progress.update(task, advance=1, rate=f"{speed:.1f} {unit}/s")
            if not console.is_terminal and now - said > LINE_EVERY:
                left = (total - done) / speed / 60
                print(f"{done} of {total}, {speed:.1f} {unit}/s, {left:.0f} min left", file=sys.stderr, flush=True)
                said = now
            yield result
