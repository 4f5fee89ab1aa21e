"""How far each benchmark is: rate, time left, running score; bars on a terminal, now and then a line in a log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from evr1_core.evaluate.rows import Row
from evr1_core.evaluate.work import Work

LINE_EVERY = 30.0  # seconds


class Progress:
    """Hears of every row. The running score is the mean of the first score of each row so far, in percent."""

    def __init__(self, works: Sequence[Work]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        console = Console(stderr=True)
        rate, score = TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[score]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn(), score)
        self._bars = Bars(*columns, console=console, disable=not console.is_terminal)
        self._terminal = console.is_terminal
        self._counts = {work.id: Count(work) for work in works}
        self._tasks: dict[str, Any] = {
            name: self._bars.add_task(name, total=count.total, completed=count.done, rate="", score=count.score())
            for name, count in self._counts.items()
        }

    def said(self, work: Work, row: Row) -> None:
        """Takes a new row, or a judge's verdict on an old one, into account."""
        count = self._counts[work.id]
        count.take(row)
        self._bars.update(self._tasks[work.id], completed=count.done, rate=f"{count.rate():.1f}/s", score=count.score())
        now = time.monotonic()
        if not self._terminal and (now - count.line > LINE_EVERY or count.done == count.total):
            count.line = now
            print(count.text(), file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()


class Count:
    """Rows of one benchmark so far."""

    def __init__(self, work: Work) -> None:
        self.name, self.total = work.id, len(work.items)
        self._scores = {item.uid: first(work.rows[item.uid]) for item in work.items if item.uid in work.rows}
        self._before, self._sum = len(self._scores), sum(self._scores.values())
        self._start, self.line = math.inf, time.monotonic()

    def take(self, row: Row) -> None:
        """A row, new or in the place of one."""
        self._start = min(self._start, time.monotonic())  # the first row: an engine may take a minute to start
        value = first(row)
        self._sum += value - self._scores.get(row["uid"], 0.0)
        self._scores[row["uid"]] = value

    @property
    def done(self) -> int:
        """Questions with a row."""
        return len(self._scores)

    def rate(self) -> float:
        """Questions a second since the first of this process."""
        return max(0, self.done - self._before - 1) / max(time.monotonic() - self._start, 1e-9)

    def score(self) -> str:
        """The running score."""
        return f"{100 * self._sum / self.done:.1f} %" if self.done else ""

    def text(self) -> str:
        """One line."""
        rate = self.rate()
        left = f", {(self.total - self.done) / rate / 60:.0f} min left" if rate > 0 and self.done < self.total else ""
        return f"{self.name}: {self.done} of {self.total}, {rate:.1f}/s{left}, score {self.score()}"


def first(row: Row) -> float:
    """The first score of a row."""
    return float(next(iter(row["scores"].values())))
