"""`evr1 score`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evr1_core.cli.main import main

GOOD = "<think>a</think><answer>{}</answer>"
CHOICE = {"kind": "multiple_choice", "ground_truth": "B", "options": ["A. x", "B. y"]}
ROWS: list[dict[str, Any]] = [
    {**CHOICE, "id": "m1", "response": GOOD.format("B"), "expected": 1},
    {**CHOICE, "id": "m2", "response": "A or B", "expected": 0.0},
    {
        "id": "t1",
        "kind": "temporal_grounding",
        "response": GOOD.format("1 to 3 s"),
        "ground_truth": {"time": [1, 5]},
        "expected": 0.5,
    },
    {"id": "e1", "kind": "extract", "response": GOOD.format("x"), "expected": "x"},
    {"id": "f1", "kind": "format", "response": GOOD.format("x"), "expected": 1.0},
]


@pytest.fixture(name="score")
def _score(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def score(rows: list[dict[str, Any]], *words: str) -> tuple[int, str, str]:
        file = tmp_path / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        status = main(["score", str(file), "--rewards", "mcq,temporal_iou", *words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return score


def test_table(score) -> None:
    status, out, _ = score(ROWS)
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["type", "rows", "accuracy", "format", "parsed", "not", "judged"],
        ["extract", "1", "-", "1.0000", "1.0000", "0"],
        ["format", "1", "-", "1.0000", "1.0000", "0"],
        ["multiple", "choice", "2", "0.5000", "0.5000", "0.5000", "0"],
        ["temporal", "grounding", "1", "0.5000", "0.0000", "1.0000", "0"],
    ]


def test_expectations(score) -> None:
    status, out, _ = score(ROWS, "--expect")
    assert (status, out.splitlines()[-1]) == (0, "5 of 5 rows as expected")
    wrong = [{**row, "expected": "y" if row["kind"] == "extract" else 0.25} for row in ROWS]
    status, out, _ = score(wrong, "--expect")
    assert status == 1
    assert "0 of 5 rows as expected" in out
    assert "rows.jsonl:2: m2 (multiple choice): expected 0.25, is 0.0; no single option chosen" in out
    assert "rows.jsonl:4: e1 (extract): expected 'y', is 'x'" in out


def test_tolerance(score) -> None:
    row = {**ROWS[2], "expected": 0.52}
    assert score([row], "--expect")[0] == 1
    assert score([{**row, "tolerance": 0.03}], "--expect")[0] == 0


def test_nothing_to_compare_with(score) -> None:
    rows = [{key: value for key, value in row.items() if key != "expected"} for row in ROWS[:1]]
    status, _, err = score(rows, "--expect")
    assert status == 2
    assert "no row has `expected`" in err


def test_out(score, tmp_path: Path) -> None:
    out = tmp_path / "scored.jsonl"
    assert score(ROWS, "--out", str(out), "--set", "reward.overlong_buffer=10")[0] == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["uid"] for row in rows] == ["m1", "m2", "t1", "e1", "f1"]
    assert rows[0] == {
        "uid": "m1",
        "origin": f"{tmp_path}/rows.jsonl:1",
        "problem_type": "multiple choice",
        "answer": "B",
        "parsed": True,
        "format": 1.0,
        "reward": "mcq",
        "total": 1.0,
        "accuracy": 1.0,
        "overlong": 0.0,
        "judged": True,
        "note": "chose B",
        "expected": 1,
    }
    assert rows[1]["note"] == "no single option chosen"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "scored.jsonl"]


def test_settings_and_options(score) -> None:
    row = {**ROWS[2], "response": GOOD.format("00:01-00:03")}
    assert score([row], "--expect")[0] == 0
    assert score([row], "--expect", "--set", "rewards.temporal_iou.options.clock=false")[0] == 1
    response = "a</think><answer>B</answer>"
    opened = [{"kind": "format", "response": response, "expected": 1.0}]
    assert score(opened, "--expect")[0] == 1
    assert score(opened, "--expect", "--opens-thinking")[0] == 0


def test_configuration_file(score, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("rewards: {temporal_iou: {options: {clock: false}}}\n", encoding="utf-8")
    row = {**ROWS[2], "response": GOOD.format("00:01-00:03"), "expected": 0.0}
    assert score([row], "--expect", "--config", str(config))[0] == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROWS[0], "kind": "poetry"}, "rows.jsonl:1: record 'm1': no chosen reward serves problem type 'poetry'"),
        ({**ROWS[0], "ground_truth": "C"}, "rows.jsonl:1: record 'm1' (multiple choice): the gold answer 'C' is not a letter"),
        ({**ROWS[0], "response": None}, "rows.jsonl:1: `response` is missing"),
    ],
)
def test_bad_rows(score, row: dict[str, Any], message: str) -> None:
    status, out, err = score([row, row], "--expect")
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 2


def test_bad_words(score, tmp_path: Path) -> None:
    assert score(ROWS, "--rewards", "mqc")[2].startswith("--rewards: no reward 'mqc'; did you mean 'mcq'?")
    assert "the file that is read" in score(ROWS, "--out", str(tmp_path / "rows.jsonl"))[2]
    assert "reward.format_weight" in score(ROWS, "--set", "reward.formt_weight=0")[2]
    assert score(ROWS, "--out", str(tmp_path / "nowhere" / "x.jsonl"))[0] == 2


def test_default_rewards_are_those_that_serve_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    assert main(["score", str(file), "--expect"]) == 0
    assert "5 of 5" in capsys.readouterr().out
