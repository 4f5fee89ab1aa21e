"""The file of rows after every kind of end."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import DataError, Evr1Error
from evr1_core.evaluate.rows import RowFile


def row(uid, settings="s", **more):
    return {"uid": uid, "settings": settings, "response": "long", **more}


def test_rows_come_back_by_uid_and_settings(tmp_path):
    with RowFile(tmp_path / "b" / "rows.jsonl") as file:
        for each in (row("a", score=0), row("b", "other"), row("a", score=1)):
            file.append(each)
        assert file.rows("s") == ({"a": {"uid": "a", "settings": "s", "score": 1}}, 1)
        assert file.rows("s", text=True)[0]["a"]["response"] == "long"


@pytest.mark.parametrize("torn", ["x", '{"uid": "c", "settings"', "y" * 200_000])
@pytest.mark.parametrize("kept", [0, 2])
def test_a_torn_line_is_cut_off_when_writing_goes_on(tmp_path, torn, kept):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row(str(n))) + "\n" for n in range(kept)) + torn)
    with RowFile(path) as file:
        assert len(file.rows("s")[0]) == kept
        file.append(row("next"))
        assert set(file.rows("s")[0]) == {*map(str, range(kept)), "next"}


def test_half_a_surrogate_pair_does_no_harm(tmp_path):
    with RowFile(tmp_path / "rows.jsonl") as file:
        file.append(row("a", answer="\ud83d"))
        assert set(file.rows("s")[0]) == {"a"}


def test_two_writers_and_foreign_lines_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    with RowFile(path), pytest.raises(Evr1Error, match="another evaluation is writing here"):
        RowFile(path)
    path.write_text('{"uid": "a"}\nnonsense\n')
    with RowFile(path) as file, pytest.raises(DataError, match=r"rows\.jsonl:2: no valid JSON"):
        file.rows("s")
