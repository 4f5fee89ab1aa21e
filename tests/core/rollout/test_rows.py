"""Reading stored responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evr1_core.api import DataError
from evr1_core.rollout.rows import Row, read_rows


def read(folder: Path, *rows: Any) -> list[Row]:
    file = folder / "rows.jsonl"
    file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return read_rows(file)


def test_fields(tmp_path: Path) -> None:
    [row] = read(
        tmp_path,
        {
            "id": 7,
            "problem_type": "Multiple_Choice",
            "response": "<answer>B</answer>",
            "answer": "B",
            "options": ["A. 1", "B. 2", 3],
            "num_tokens": 12,
            "truncated": True,
            "width": 640,
            "tolerance": 0.5,
            "extra": {"box_space": "norm1"},
        },
    )
    sample = row.response.sample
    assert (sample.uid, sample.task, sample.answer, sample.options) == ("7", "multiple choice", "B", ("A. 1", "B. 2", "3"))
    assert sample.extra == {"width": 640, "tolerance": 0.5, "box_space": "norm1"}
    assert sample.origin == f"{tmp_path}/rows.jsonl:1"
    assert (row.response.num_tokens, row.response.truncated, row.expects) == (12, True, False)


def test_gold_of_any_type_and_default_name(tmp_path: Path) -> None:
    rows = read(tmp_path, *({"kind": "t", "response": "", "ground_truth": gold} for gold in (True, 4, {"time": [1, 2]}, "x")))
    assert [row.response.sample.answer for row in rows] == ["true", "4", '{"time": [1, 2]}', "x"]
    assert [row.response.sample.uid for row in rows] == ["rows/1", "rows/2", "rows/3", "rows/4"]


def test_tolerance_belongs_to_the_expectation(tmp_path: Path) -> None:
    [row] = read(tmp_path, {"kind": "ocr", "response": "", "answer": "x", "expected": 0.5, "tolerance": 0.1, "why": "so"})
    assert (row.expects, row.expected, row.tolerance) == (True, 0.5, 0.1)
    assert row.response.sample.extra == {}


def test_subtype(tmp_path: Path) -> None:
    [row] = read(tmp_path, {"kind": "code", "subtype": "SVG", "response": "", "answer": "x"})
    assert (row.kind, row.subtask, row.response.sample.extra) == ("code", "svg code", {"subtype": "SVG"})


def test_kinds_without_a_gold(tmp_path: Path) -> None:
    rows = read(
        tmp_path, {"kind": "extract", "response": "x", "expected": None}, "", {"kind": "format", "response": "x", "expected": 1}
    )
    assert [(row.kind, row.expected) for row in rows] == [("extract", None), ("format", 1)]


def test_every_bad_row_is_listed(tmp_path: Path) -> None:
    good = {"kind": "ocr", "response": "x", "answer": "y"}
    bad = [
        "no json",
        [1],
        {**good, "response": 3},
        {**good, "kind": " "},
        {**good, "answer": None},
        {**good, "options": "A"},
        {**good, "expected": "1.0"},
        {**good, "expected": True},
        {**good, "expected": 1, "tolerance": "x"},
        {**good, "num_tokens": -1},
        {**good, "truncated": 1},
        {**good, "extra": []},
        {**good, "subtype": 1},
        {"kind": "extract", "response": "x", "expected": 1},
    ]
    with pytest.raises(DataError) as caught:
        read(tmp_path, good, *bad)
    assert [problem.split(":")[1] for problem in caught.value.problems] == [str(line) for line in range(2, 2 + len(bad))]


def test_files_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no rows"):
        read(tmp_path, "")
    with pytest.raises(DataError, match="No such file"):
        read_rows(tmp_path / "missing.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"response": "\xe9"}\n')
    with pytest.raises(DataError, match=r"latin\.jsonl:1: is not JSON"):
        read_rows(tmp_path / "latin.jsonl")
