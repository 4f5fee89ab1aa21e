"""Rows of finished questions in a file: appended whole, found again after any end of the process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from evr1_core.api import DataError, Evr1Error

Row = Mapping[str, Any]


class RowFile:
    """``rows.jsonl`` of one benchmark: a JSON object a line with ``uid`` and ``settings``; of several for one question under the
    same settings, the last counts.

    Appended lines are flushed one by one, so that a killed process leaves at most one torn line, at the end: it is cut off when
    the file is opened again. Raises Evr1Error when another process is writing to it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file: IO[bytes] = path.open("a+b")
        _lock(self._file, path)
        _cut_torn(self._file)

    def append(self, row: Row) -> None:
        """Writes a row; it is on its way to the disk when this returns."""
        self._file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._file.flush()

    def rows(self, settings: str, *, text: bool = False) -> tuple[dict[str, Row], int]:
        """(the rows under these settings by uid, how many there are under others); with their responses only as ``text``."""
        found: dict[str, Row] = {}
        others = 0
        for row in read_rows(self.path):
            if row.get("settings") == settings:
                found[row["uid"]] = row if text else light(row)
            else:
                others += 1
        return found, others

    def close(self) -> None:
        """Flushes to the disk and closes."""
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def light(row: Row) -> Row:
    """A row without its response."""
    return {name: value for name, value in row.items() if name != "response"}


def read_rows(path: Path) -> Iterator[Row]:
    """All rows of a file, in order; a torn last line is passed over. Raises DataError for any other that is none."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(
                    [f"{path}:{number}: no valid JSON ({error}); remove this line to have its question asked again"]
                ) from error
            if not isinstance(row, dict) or not isinstance(row.get("uid"), str):
                raise DataError([f"{path}:{number}: no row of an evaluation; remove it"])
            yield row


def _lock(file: IO[bytes], path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Evr1Error(f"{path}: another evaluation is writing here; wait for it, or choose another --output") from error


def _cut_torn(file: IO[bytes]) -> None:
    end = file.seek(0, os.SEEK_END)
    position = end
    while position > 0:
        start = max(0, position - 65536)
        file.seek(start)
        found = file.read(position - start).rfind(b"\n")
        if found >= 0:
            position = start + found + 1
            break
        position = start
    if position < end:
        file.truncate(position)
