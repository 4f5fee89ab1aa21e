"""Preflight and alarms in a run: a policy with random weights, which never answers anything readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evr1_core.cli.main import main

OPTIONS = ["A. red", "B. blue"]
CONFIG = """\
model: {path: tiny}
data: {train: [train.jsonl], keys: {uid: id}, shuffle: false}
algorithm: {name: grpo}
rewards: {mcq: {}}
train: {steps: 4, prompts_per_step: 2, lr: 1.0e-5, threads: 1}
rollout: {n: 2, max_response_tokens: 4}
log: {trackers: [{name: jsonl}]}
output: out
"""


def row(number: int, answer: str = "A") -> dict[str, Any]:
    return {"id": f"q{number}", "problem": "Which?", "answer": answer, "options": OPTIONS, "problem_type": "multiple choice"}


@pytest.fixture(name="start")
def _start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts a run on records in a folder with a tiny checkpoint; the exit status."""
    from evr1_plugins.models.qwen3_vl import Qwen3VL

    monkeypatch.chdir(tmp_path)
    Qwen3VL().tiny(tmp_path / "tiny", seed=0)
    (tmp_path / "run.yaml").write_text(CONFIG)

    def start(rows: list[dict[str, Any]], *sets: str) -> int:
        (tmp_path / "train.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        return main(["run", *(word for text in sets for word in ("--set", text))])

    return start


def test_a_bad_gold_stops_the_run_before_the_first_step(start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start([row(1), row(2, "C"), row(3, "maybe A"), row(4)]) == 2
    printed = capsys.readouterr().err
    problem = "the gold answer 'C' is not a letter or the text of one of its 2 options"
    assert f"train.jsonl:2: record 'q2' (multiple choice): {problem}" in printed
    assert "train.jsonl:3: record 'q3'" in printed
    assert "q1" not in printed
    assert "q4" not in printed
    assert not list(tmp_path.glob("out/model*"))


def test_bad_golds_can_be_allowed(start, tmp_path: Path) -> None:
    assert start([row(1), row(2, "C")], "data.allow_bad_gold=true", "train.steps=1", "alarms.patience=0") == 0
    assert (tmp_path / "out" / "model" / "config.json").is_file()


def test_alarms_stop_a_run_that_cannot_learn(start, capsys: pytest.CaptureFixture[str]) -> None:
    assert start([row(number) for number in range(1, 9)], "alarms.patience=2") == 2
    printed = capsys.readouterr().err
    assert "step 2: alarm: in each of the last 2 steps" in printed
    assert "all 2 groups had equal rewards" in printed
    assert "no answer could be read" in printed
    assert "more than 50% of the responses were cut off" in printed


def test_alarms_can_warn(start) -> None:
    with pytest.warns(UserWarning, match="no answer could be read"):
        assert start([row(number) for number in range(1, 9)], "alarms.patience=2", "alarms.action=warn") == 0
