"""The shared cases: each row is a test of the reward that serves its type, of the extractor or of the format reward."""

from __future__ import annotations

from pathlib import Path

import pytest

from evr1_core.cli.main import main

CASES = Path(__file__).parents[4] / "shared" / "cases" / "rewards.jsonl"

pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the shared cases are not here")


def test_all_rows_are_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["score", str(CASES), "--expect"])
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert printed.splitlines()[-1] == "87 of 87 rows as expected"
