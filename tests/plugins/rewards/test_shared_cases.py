"""The shared cases: each row is a test of the reward that serves its type, of the extractor or of the format reward."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evr1_core.cli.main import main

CASES = Path(__file__).parents[4] / "shared" / "cases" / "rewards.jsonl"
LINES = CASES.read_text(encoding="utf-8").splitlines() if CASES.is_file() else []
KINDS = sorted({json.loads(line)["kind"] for line in LINES})

pytestmark = pytest.mark.skipif(not LINES, reason="the shared cases are not here")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_as_expected(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line for line in LINES if json.loads(line)["kind"] == kind]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    status = main(["score", str(file), "--expect"])
    printed = capsys.readouterr()
    assert status == 0, printed.out + printed.err
    assert printed.out.splitlines()[-1] == f"{len(rows)} of {len(rows)} rows as expected"


def test_all_rows_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", str(CASES), "--expect"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.splitlines()[-1] == f"{len(LINES)} of {len(LINES)} rows as expected"
