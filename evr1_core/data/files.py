"""Rows of data files, each with the place it stands at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evr1_core.api.errors import DataError, Evr1Error

Row = tuple[int, str, Any]  # number in the file from 0, file:line, content


def read_rows(path: Path) -> tuple[list[Row], list[str]]:
    """All rows of a .json, .jsonl or .parquet file, and what is wrong with lines that cannot be read.

    Raises DataError for a file of which nothing can be read.
    """
    readers = {".json": _json, ".jsonl": _jsonl, ".ndjson": _jsonl, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError([f"{path}: unknown kind of file; known: {', '.join(readers)}"])
    try:
        path.open("rb").close()  # the same words for every reader when it cannot be opened
        rows, problems = reader(path)
    except OSError as error:
        raise DataError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    except RecursionError as error:
        raise DataError([f"{path}: is nested too deep to be read"]) from error
    if not rows and not problems:
        raise DataError([f"{path}: holds no records"])
    return rows, problems


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError([f"{path}: is not UTF-8 text (byte {error.start})"]) from error


def _jsonl(path: Path) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    problems: list[str] = []
    for line, text in enumerate(_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            rows.append((len(rows), f"{path}:{line}", json.loads(text)))
        except ValueError as error:
            problems.append(f"{path}:{line}: no valid JSON ({getattr(error, 'msg', error)})")
    return rows, problems


def _json(path: Path) -> tuple[list[Row], list[str]]:
    """The elements of one array, each with the line it begins at."""
    rows: list[Row] = []
    try:
        for line, value in _elements(_text(path)):
            rows.append((len(rows), f"{path}:{line}", value))
    except json.JSONDecodeError as error:
        return rows, [f"{path}:{error.lineno}: no valid JSON ({error.msg}); what follows was not read"]
    except ValueError as error:  # a number of thousands of digits
        return rows, [f"{path}: no valid JSON ({error}); what follows record {len(rows)} was not read"]
    return rows, []


def _elements(text: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    position, line, counted = _skip(text, 0), 1, 0
    if text[position : position + 1] != "[":
        lines = "; one object a line is a .jsonl file" if text[position : position + 1] == "{" else ""
        raise json.JSONDecodeError(f"the file must hold one array of records{lines}", text, position)
    position = _skip(text, position + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, position = decoder.raw_decode(text, position)
        yield line, value
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
            if text[position : position + 1] == "]":
                raise json.JSONDecodeError("expected a record behind the last comma", text, position)
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("expected , or ] behind a record", text, position)
    rest = _skip(text, position + 1)
    if rest < len(text):
        raise json.JSONDecodeError("text behind the array", text, rest)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _parquet(path: Path) -> tuple[list[Row], list[str]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise Evr1Error(f"{path}: reading Parquet needs pyarrow: pip install 'evr1[parquet]'") from error
    try:
        rows = parquet.read_table(path).to_pylist()
    except ArrowException as error:
        raise DataError([f"{path}: no valid Parquet ({error})"]) from error
    return [(number, f"{path}:row {number + 1}", row) for number, row in enumerate(rows)], []
