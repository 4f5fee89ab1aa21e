"""A part of a data file: some of its rows, as they stand, in a file of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from evr1_core.api.errors import DataError
from evr1_core.api.files import JSON_LINES, elements, text_of
from evr1_core.data.whole import replacing

BOM = b"\xef\xbb\xbf"
T = TypeVar("T")


def write_part(source: Path, numbers: Collection[int], out: Path) -> None:
    """Writes the rows of these numbers, counted as :func:`evr1_core.api.files.read_rows` does, in the order of ``source``.

    A row of JSON or JSONL keeps its text to the letter; Parquet keeps its schema and metadata. ``out`` appears whole or not at all.
    Raises DataError.
    """
    try:
        with replacing(out) as partial:
            _writer(source)(source, frozenset(numbers), partial)
    except OSError as error:
        raise DataError([f"{out}: cannot be written: {error.strerror or error}"]) from error


def _writer(source: Path) -> Callable[[Path, frozenset[int], Path], None]:
    ending = source.suffix.lower()
    return _json_lines if ending in JSON_LINES else {".json": _json, ".parquet": _parquet}[ending]


def _json_lines(source: Path, numbers: frozenset[int], out: Path) -> None:
    lines = source.read_bytes().removeprefix(BOM).splitlines(keepends=True)
    chosen = _chosen([line for line in lines if line.decode("utf-8").strip()], numbers)
    out.write_bytes(b"".join(line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in chosen))


def _json(source: Path, numbers: frozenset[int], out: Path) -> None:
    rows = _chosen([row for _, row, _ in elements(text_of(source))], numbers)
    out.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def _parquet(source: Path, numbers: frozenset[int], out: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    with parquet.ParquetFile(source) as file:  # read_table would make columns of folder names such as `split=train`
        table = file.read()
    mask = pyarrow.array([number in numbers for number in range(table.num_rows)], pyarrow.bool_())
    parquet.write_table(table.filter(mask), out)


def _chosen(rows: Sequence[T], numbers: frozenset[int]) -> list[T]:
    return [row for number, row in enumerate(rows) if number in numbers]
