"""SIGKILL at thirty random moments, then an undisturbed end: the rows of a run that nothing happened to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.evaluate.conftest import SMALL, write_release
from tests.tiny import tiny_folder

SCRIPT = Path(__file__).with_name("killed.py")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rows_and_scores_are_those_of_an_undisturbed_run(tmp_path):
    write_release(tmp_path / "data", videos=20, per_video=10)
    sets = [*SMALL, "engine.options={prompts_per_batch: 4}", "frames.video_max_frames=8"]

    def run(kills, seconds, output):
        words = ["eval", "--model", str(tiny_folder()), "--data", str(tmp_path / "data"), "--benchmarks", "livesports3k_qa"]
        words += ["--output", str(tmp_path / output), "--protocol", "ref", *(f"--set={each}" for each in sets)]
        command = [sys.executable, str(SCRIPT), str(kills), str(seconds), *words]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1].split()

    _, status, seconds = run(0, 0, "whole")
    assert status == "0"
    killed, status, _ = run(30, seconds, "killed")
    assert (int(killed) >= 20, status) == (True, "0")
    whole, resumed = (tmp_path / name / "livesports3k_qa" / "rows.jsonl" for name in ("whole", "killed"))
    first, second = ([json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in (whole, resumed))
    assert len(second) == len(first) == 200  # no hole, none twice
    assert sorted(second, key=lambda row: row["uid"]) == sorted(first, key=lambda row: row["uid"])
    results = [json.loads((tmp_path / name / "results.json").read_text("utf-8"))["benchmarks"][0] for name in ("whole", "killed")]
    assert results[0]["scores"] == results[1]["scores"]
    assert results[0]["interval"] == results[1]["interval"]
