import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api import DataError, Evr1Error
from evr1_core.api.files import read_rows


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(name, text):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_rows(Path(name))


def refused(name, text):
    with pytest.raises(DataError) as caught:
        rows(name, text)
    return list(caught.value.problems)


def test_lines_of_jsonl():
    found, problems = rows("a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": "\xe2\x80\xa8"}\n[1]')
    assert problems == []
    assert found == [(0, "a.jsonl:1", {"a": 1}), (1, "a.jsonl:4", {"a": "\u2028"}), (2, "a.jsonl:5", [1])]


def test_every_broken_line_is_named_and_the_others_are_read():
    found, problems = rows("a.jsonl", '{"a": 1}\n{"a": 2\n{"a": 3}\n{a}\n' + f'{{"a": {"9" * 5000}}}\n')
    assert [place for _, place, _ in found] == ["a.jsonl:1", "a.jsonl:3"]
    assert [problem.partition(" (")[0] for problem in problems] == [f"a.jsonl:{line}: no valid JSON" for line in (2, 4, 5)]


def test_the_lines_of_an_array_are_those_where_elements_begin():
    text = '\n[\n  {"a":\n 1},   {"b": 2},\n\n  "x\\n",\n {\n"c": [\n3]}\n]\n\n'
    assert rows("a.json", text) == (
        [(0, "a.json:3", {"a": 1}), (1, "a.json:4", {"b": 2}), (2, "a.json:6", "x\n"), (3, "a.json:7", {"c": [3]})],
        [],
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=8,
)


@given(st.lists(values, min_size=1), st.sampled_from([None, 1, 4]))
def test_arrays_are_read_as_the_library_reads_them(tmp_path_factory, elements, indent):
    path = tmp_path_factory.mktemp("json") / "a.json"
    text = json.dumps(elements, indent=indent)
    path.write_text(text)
    found, problems = read_rows(path)
    assert problems == []
    assert [value for _, _, value in found] == elements
    if indent:  # each element begins on the first line that has just this indentation and does not close a bracket
        lines = [n for n, line in enumerate(text.split("\n"), 1) if line[:indent].isspace() and line[indent] not in " ]}"]
        assert [int(place.rpartition(":")[2]) for _, place, _ in found] == lines


BROKEN = {
    '[{"a": 1},\n {"b" 2}]': "a.json:2: no valid JSON (Expecting ':' delimiter); what follows was not read",
    '[{"a": 1}\n {"b": 2}]': "a.json:2: no valid JSON (expected , or ] behind a record); what follows was not read",
    '[{"a": 1}]\n]': "a.json:2: no valid JSON (text behind the array); what follows was not read",
    '[{"a": 1}\n': "a.json:2: no valid JSON (expected , or ] behind a record); what follows was not read",
    '[{"a": 1},': "a.json:1: no valid JSON (Expecting value); what follows was not read",
    '[{"a": 1},]': "a.json:1: no valid JSON (expected a record behind the last comma); what follows was not read",
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken_arrays(text):
    found, problems = rows("a.json", text)
    assert (found, problems) == ([(0, "a.json:1", {"a": 1})], [BROKEN[text]])


def test_other_content():
    assert "(the file must hold one array of records; one object a line is a .jsonl file)" in rows("a.json", "{}")[1][0]
    assert "must hold one array of records)" in rows("a.json", "3")[1][0]
    assert "no valid JSON (" in rows("a.json", "[1, " + "9" * 5000 + "]")[1][0]
    assert refused("a.json", "[" * 100_000) == ["a.json: is nested too deep to be read"]
    assert refused("a.jsonl", "[" * 100_000) == ["a.jsonl: is nested too deep to be read"]
    assert refused("a.json", "[ ]") == ["a.json: holds no records"]
    assert refused("a.jsonl", "\n\n") == ["a.jsonl: holds no records"]
    assert refused("a.jsonl", b'{"a": "\xff"}') == ["a.jsonl: is not UTF-8 text (byte 7)"]
    assert refused("a.csv", "a,b") == ["a.csv: unknown kind of file; known: .json, .jsonl, .ndjson, .parquet"]


def test_files_that_are_not_there():
    for path in ("no.json", "no.jsonl", "no.parquet"):
        with pytest.raises(DataError, match=rf"^{path}: cannot be read: No such file"):
            read_rows(Path(path))
    Path("folder.json").mkdir()
    with pytest.raises(DataError, match=r"^folder.json: cannot be read: Is a directory"):
        read_rows(Path("folder.json"))


def test_parquet():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = [{"a": 1, "b": ["x", "y"], "c": {"d": None}}, {"a": None, "b": [], "c": None}]
    parquet.write_table(pyarrow.Table.from_pylist(table), "a.parquet")
    assert read_rows(Path("a.parquet")) == ([(0, "a.parquet:row 1", table[0]), (1, "a.parquet:row 2", table[1])], [])
    assert refused("b.parquet", "no parquet")[0].startswith("b.parquet: no valid Parquet (")


def test_parquet_without_the_extra(monkeypatch):
    Path("a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Evr1Error, match=r"a.parquet: reading Parquet needs pyarrow: pip install 'evr1\[parquet\]'"):
        read_rows(Path("a.parquet"))
