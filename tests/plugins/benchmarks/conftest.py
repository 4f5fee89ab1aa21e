"""Records of benchmarks: real ones in the normalised form, hand-made ones in the shape of the official releases."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evr1_core.api import Benchmark, BenchmarkPaths, EvalItem, Skipped

RECORDS = Path(__file__).parents[4] / "shared" / "data" / "benchmarks"
Load = Callable[..., list[EvalItem]]


@pytest.fixture
def records() -> Callable[[Benchmark], list[EvalItem]]:
    """``records(benchmark)``: its sixteen real records in the normalised form; the test is skipped where they are not at hand."""

    def load(benchmark: Benchmark) -> list[EvalItem]:
        paths = BenchmarkPaths(folder=RECORDS / benchmark.id, source="normalised")
        if not RECORDS.is_dir():
            pytest.skip("the published records are not at hand")
        return loaded(benchmark, paths)

    return load


@pytest.fixture
def release(tmp_path: Path) -> Load:
    """``release(benchmark, {"test.json": rows})``: the items of hand-made rows, written as files of an official release."""

    def load(benchmark: Benchmark, files: Mapping[str, Any]) -> list[EvalItem]:
        for name, rows in files.items():
            path = tmp_path / benchmark.id / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, rows)
        return loaded(benchmark, BenchmarkPaths(folder=tmp_path / benchmark.id, source="official"))

    return load


def write(path: Path, rows: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
    """Rows as a file of the kind that its name says."""
    if path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(list(rows)), path)
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows] if path.suffix == ".jsonl" else [json.dumps(rows)]
        path.write_text("\n".join(lines), "utf-8")


def loaded(benchmark: Benchmark, paths: BenchmarkPaths) -> list[EvalItem]:
    """The items; none may be left out."""
    found = list(benchmark.load(paths))
    assert not [each for each in found if isinstance(each, Skipped)], found
    return [each for each in found if isinstance(each, EvalItem)]
