"""Rows of data files, each with the place it stands at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evr1_core.api.errors import DataError, Evr1Error

Row = tuple[int, str, Any]  # number in the file from 0, file:line, content


def read_rows(path: Path) -> list[Row]:
    """All rows of a .json, .jsonl or .parquet file. Raises DataError with every line that cannot be read."""
    readers = {".json": _json, ".jsonl": _jsonl, ".ndjson": _jsonl, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError([f"{path}: unknown kind of file; known: {', '.join(readers)}"])
    try:
        rows = reader(path)
    except OSError as error:
        raise DataError([f"{path}: cannot be read ({error.strerror or error})"]) from error
    if not rows:
        raise DataError([f"{path}: holds no records"])
    return rows


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError([f"{path}: is not UTF-8 text (byte {error.start})"]) from error


def _jsonl(path: Path) -> list[Row]:
    rows: list[Row] = []
    problems = []
    for line, text in enumerate(_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            rows.append((len(rows), f"{path}:{line}", json.loads(text)))
        except ValueError as error:
            problems.append(f"{path}:{line}: no valid JSON ({error})")
    if problems:
        raise DataError(problems)
    return rows


def _json(path: Path) -> list[Row]:
    """The elements of one array, each with the line it begins at."""
    text = _text(path)
    try:
        return [(number, f"{path}:{line}", value) for number, (line, value) in enumerate(_elements(text))]
    except json.JSONDecodeError as error:
        raise DataError([f"{path}:{error.lineno}: no valid JSON ({error.msg})"]) from error


def _elements(text: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    position, line, counted = _skip(text, 0), 1, 0
    if text[position : position + 1] != "[":
        raise json.JSONDecodeError("the file must hold one array of records", text, position)
    position = _skip(text, position + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, position = decoder.raw_decode(text, position)
        yield line, value
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] != "]":
            raise json.JSONDecodeError("expected , or ] behind a record", text, position)
    rest = _skip(text, position + 1)
    if rest < len(text):
        raise json.JSONDecodeError("text behind the array", text, rest)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _parquet(path: Path) -> list[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise Evr1Error(f"{path}: reading Parquet needs pyarrow: pip install 'evr1[parquet]'") from error
    try:
        rows = parquet.read_table(path).to_pylist()
    except ArrowException as error:
        raise DataError([f"{path}: no valid Parquet ({error})"]) from error
    return [(number, f"{path}:row {number + 1}", row) for number, row in enumerate(rows)]
