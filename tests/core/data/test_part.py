"""Some rows of a file, in a file of the same kind: nothing about them changes."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import DataError
from evr1_core.api.files import read_rows
from evr1_core.data.part import write_part

ODD = ['{"a": 1.50, "a": 2}', '{ "b" : "\\u00e9 é" }', "[1,  2]", '{"c": {"d": null}}']


def test_lines_keep_their_text(tmp_path):
    source = tmp_path / "x.jsonl"
    source.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([ODD[0], "", ODD[1], "  ", ODD[2], ODD[3]]).encode())
    write_part(source, [3, 0, 1], tmp_path / "y.jsonl")
    assert (tmp_path / "y.jsonl").read_bytes() == f"{ODD[0]}\r\n{ODD[1]}\r\n{ODD[3]}\n".encode()


def test_elements_of_an_array_keep_their_text(tmp_path):
    source = tmp_path / "x.json"
    source.write_text(f"[{ODD[0]},\n\n  {ODD[1]}   ,{ODD[2]}, {ODD[3]}\n]")
    write_part(source, {1, 3}, tmp_path / "y.json")
    assert (tmp_path / "y.json").read_text() == f"[\n{ODD[1]},\n{ODD[3]}\n]\n"


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_numbers_are_those_of_the_reader(tmp_path, ending):
    """Rows that share a line, blank lines and lines ended by a carriage return alone."""
    text = '[{"n": 0}, {"n": 1},\n\n{"n": 2}]' if ending == ".json" else '{"n": 0}\r{"n": 1}\n\n\u00a0\n{"n": 2}'
    source, out = tmp_path / f"x{ending}", tmp_path / f"y{ending}"
    source.write_text(text, newline="")
    for number, _, row in read_rows(source)[0]:
        write_part(source, [number], out)
        assert [each for _, _, each in read_rows(out)[0]] == [row]


def test_parquet_keeps_schema_and_metadata(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    schema = pyarrow.schema(
        [
            pyarrow.field("t", pyarrow.large_string(), metadata={"why": "long"}),
            ("d", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
            ("n", pyarrow.list_(pyarrow.struct([("x", pyarrow.float32()), ("y", pyarrow.timestamp("ms"))]))),
            ("b", pyarrow.binary()),
        ],
        metadata={"made": "by hand"},
    )
    rows = [
        {"t": f"é{i}", "d": "ab"[i % 2], "n": [{"x": i / 3, "y": i}] * (i % 3), "b": bytes([i]) if i else None} for i in range(9)
    ]
    folder = tmp_path / "split=train"
    folder.mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema), folder / "x.parquet", row_group_size=2)
    write_part(folder / "x.parquet", {8, 0, 5}, tmp_path / "y.parquet")
    kept = parquet.ParquetFile(tmp_path / "y.parquet").read()
    before = parquet.ParquetFile(folder / "x.parquet").read()
    assert kept.schema.equals(before.schema, check_metadata=True)
    assert kept.to_pylist() == before.take([0, 5, 8]).to_pylist()
    assert [row for _, _, row in read_rows(folder / "x.parquet")[0]] == before.to_pylist()


def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path):
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps({}) + "\n")
    (tmp_path / "folder").mkdir()
    for out in (tmp_path / "none" / "y.jsonl", tmp_path / "folder"):
        with pytest.raises(DataError, match="cannot be written"):
            write_part(source, [0], out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "x.jsonl"]
