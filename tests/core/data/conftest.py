import json
from pathlib import Path

import pytest

from evr1_core.config.schema import DataConfig
from evr1_core.data.records import read_samples

ROW = {"problem": "How many?", "answer": "3", "problem_type": "counting"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with some media files."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.mp4", "b.mp4", "a.png", "b.png"):
        Path(name).write_bytes(b"x")
    return tmp_path


@pytest.fixture
def read(folder):
    """The samples of rows, written to rows.jsonl; the changes are made to a row that can be used."""

    def samples(*changes, **settings):
        rows = [{key: value for key, value in {**ROW, **change}.items() if value is not ...} for change in changes]
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_samples(["rows.jsonl"], DataConfig(**settings))

    return samples
