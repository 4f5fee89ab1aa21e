"""Pass rates on disk: one JSON object a record, appended as they are measured, so that a killed pass goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import frozen

from evr1_core.api import DataError, Evr1Error
from evr1_core.api.filters import pass_rate

START = b'{"settings": "'  # of every row, so that the beginning of a torn one can be told from another file's


@frozen(kw_only=True)
class PassRate:
    """The accuracies of the responses to one record, in [0, 1], None where a judge gave no verdict.

    ``settings`` and ``record``: what they depend on, see :mod:`evr1_core.rollout.identity`. ``truncated``: responses that the token
    limit cut off.
    """

    settings: str
    record: str
    uid: str
    accuracies: tuple[float | None, ...]
    truncated: int = 0

    @property
    def judged(self) -> bool:
        """There is a verdict on at least one response."""
        return any(accuracy is not None for accuracy in self.accuracies)

    def rate(self, threshold: float) -> float:
        """Share of the judged responses that reach the threshold."""
        return pass_rate([accuracy for accuracy in self.accuracies if accuracy is not None], threshold)


class PassRates:
    """The file of pass rates, open for one writer at a time; a context manager.

    ``settings``: rows of other settings stay in the file and are not used. ``threshold``: from which accuracy on a response passes,
    for the rates that are written. Raises DataError for a file of something else, which is left as it is, and Evr1Error when it
    cannot be written.
    """

    def __init__(self, path: Path, *, settings: str, threshold: float) -> None:
        self.path, self.settings, self._threshold = path, settings, threshold
        self._known: dict[str, PassRate] = {}

    def __enter__(self) -> PassRates:
        try:
            self._file = self.path.open("a+b", buffering=0)  # so that closing has nothing left to write, and to fail with
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def find(self, uid: str, record: str) -> PassRate | None:
        """What is known about a record as it now is. Without any verdict it counts as not done: a judge may be back by now."""
        found = self._known.get(uid)
        return found if found is not None and found.record == record and found.judged else None

    def add(self, rows: Sequence[PassRate]) -> None:
        """Appends rows; they are on the disk when this returns."""
        rest = memoryview("".join(json.dumps(self._as_row(row), ensure_ascii=False) + "\n" for row in rows).encode("utf-8"))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        self._known |= {row.uid: row for row in rows}

    def _as_row(self, row: PassRate) -> dict[str, Any]:
        return {
            "settings": row.settings,  # first: see START
            "record": row.record,
            "uid": row.uid,
            "k": len(row.accuracies),
            "pass_rate": row.rate(self._threshold) if row.judged else None,
            "threshold": self._threshold,
            "accuracies": row.accuracies,
            "truncated": row.truncated,
        }

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Evr1Error(f"--rates: another process is writing {self.path}; wait for it, or name another file") from error
        except OSError:
            return  # a file system without locks: nothing can be said about other writers

    def _read(self) -> None:
        """Takes in the rows. A last line without an end is what a killed writer left; it is cut off before anything is appended."""
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        problems = []
        for number, line in enumerate(lines, start=1):
            row = _row(line)
            if row is None:
                problems.append(f"{self.path}:{number}: no row of pass rates; name another file by --rates, or remove this line")
            elif row.settings == self.settings:
                self._known[row.uid] = row
        if not problems and torn[: len(START)] != START[: len(torn)]:
            problems.append(f"{self.path}: holds something else than pass rates; name another file by --rates")
        if problems:
            raise DataError(problems)
        if torn:
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def _unwritable(self, error: OSError) -> Evr1Error:
        return Evr1Error(f"--rates: {self.path} cannot be written: {error.strerror or error}")


def _row(line: bytes) -> PassRate | None:
    try:
        raw = json.loads(line)
        row = PassRate(
            settings=raw["settings"],
            record=raw["record"],
            uid=raw["uid"],
            accuracies=tuple(raw["accuracies"]),
            truncated=raw["truncated"],
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = all(isinstance(text, str) for text in (row.settings, row.record, row.uid))
    numbers = all(each is None or (isinstance(each, int | float) and 0 <= each <= 1) for each in row.accuracies)
    return row if texts and numbers and row.accuracies and type(row.truncated) is int else None
