"""Rows of data files, each with the place it stands at."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evr1_core.api.errors import DataError, Evr1Error

Row = tuple[int, str, Any]  # number in the file from 0, file:line, content
Reader = Callable[[Path], tuple[list[Row], list[str]]]
JSON_LINES = (".jsonl", ".ndjson")


def read_rows(path: Path) -> tuple[list[Row], list[str]]:
    """All rows of a .json, .jsonl or .parquet file, and what is wrong with lines that cannot be read.

    Raises DataError for a file of which nothing can be read.
    """
    return _read(path, {".json": _json, **dict.fromkeys(JSON_LINES, _jsonl), ".parquet": _parquet})


def read_tables(path: Path) -> tuple[list[Row], list[str]]:
    """Like :func:`read_rows`, also of .csv and .tsv files, whose values are texts, and of a JSON file that holds one object: its
    rows are pairs (key, value).
    """
    separated = dict.fromkeys((".csv", ".tsv"), _separated)
    return _read(path, {".json": _json_or_object, **dict.fromkeys(JSON_LINES, _jsonl), ".parquet": _parquet, **separated})


def _read(path: Path, readers: Mapping[str, Reader]) -> tuple[list[Row], list[str]]:
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


def text_of(path: Path) -> str:
    """The text of a file, lines ended by a line feed. Raises DataError for one that is no UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError([f"{path}: is not UTF-8 text (byte {error.start})"]) from error


def _jsonl(path: Path) -> tuple[list[Row], list[str]]:
    rows: list[Row] = []
    problems: list[str] = []
    for line, text in enumerate(text_of(path).split("\n"), start=1):
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
        for line, _, value in elements(text_of(path)):
            rows.append((len(rows), f"{path}:{line}", value))
    except json.JSONDecodeError as error:
        return rows, [f"{path}:{error.lineno}: no valid JSON ({error.msg}); what follows was not read"]
    except ValueError as error:  # a number of thousands of digits
        return rows, [f"{path}: no valid JSON ({error}); what follows record {len(rows)} was not read"]
    return rows, []


def _json_or_object(path: Path) -> tuple[list[Row], list[str]]:
    text = text_of(path)
    if not text.lstrip().startswith("{"):
        return _json(path)
    try:
        pairs = json.loads(text).items()
    except json.JSONDecodeError as error:
        raise DataError([f"{path}:{error.lineno}: no valid JSON ({error.msg})"]) from error
    return [(number, f"{path}: {key!r}", (key, value)) for number, (key, value) in enumerate(pairs)], []


def _separated(path: Path) -> tuple[list[Row], list[str]]:
    reader = csv.DictReader(text_of(path).splitlines(keepends=True), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    try:
        return [(number, f"{path}:{reader.line_num}", row) for number, row in enumerate(reader)], []
    except csv.Error as error:
        raise DataError([f"{path}:{reader.line_num}: cannot be read ({error})"]) from error


def elements(text: str) -> Iterator[tuple[int, str, Any]]:
    """Line, text and value of each element of an array. Raises JSONDecodeError where it ends, and ValueError for a number of
    thousands of digits."""
    decoder = json.JSONDecoder()
    position, line, counted = _skip(text, 0), 1, 0
    if text[position : position + 1] != "[":
        lines = "; one object a line is a .jsonl file" if text[position : position + 1] == "{" else ""
        raise json.JSONDecodeError(f"the file must hold one array of records{lines}", text, position)
    position = _skip(text, position + 1)
    while text[position : position + 1] != "]":
        line, counted = line + text.count("\n", counted, position), position
        value, end = decoder.raw_decode(text, position)
        yield line, text[position:end], value
        position = _skip(text, end)
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
        with parquet.ParquetFile(path) as file:  # read_table would make columns of folder names such as `split=train`
            rows = file.read().to_pylist()
    except ArrowException as error:
        raise DataError([f"{path}: no valid Parquet ({error})"]) from error
    return [(number, f"{path}:row {number + 1}", row) for number, row in enumerate(rows)], []
