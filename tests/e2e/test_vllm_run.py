"""A run that samples with vLLM: it goes on where vLLM is killed, its log-probs are the trainer's, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from evr1_core.demo import settings
from evr1_core.demo.dataset import corpus_of, write_dataset
from evr1_plugins.models.qwen3_vl import Qwen3VL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed (make setup-vllm)"),
]
STEPS = 30


def server_of(run: int) -> int | None:
    """The process that a run has started vLLM in."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (folder / "status").exists():
            status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
            if int(status["PPid"]) == run and "_vllm_server" in (folder / "cmdline").read_text():
                return int(folder.name)
    return None


def rows_of(folder: Path) -> list[dict[str, float]]:
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_run_goes_on_where_vllm_is_killed(tmp_path):
    data = write_dataset(tmp_path / "data", train_films=6, val_films=2, seed=3)
    Qwen3VL().tiny(tmp_path / "tiny", seed=3, corpus=corpus_of([data.warm]), width=64, vision_width=64)
    plain = settings.reinforcement(data, 3)
    plain["train"] |= {"steps": STEPS, "prompts_per_step": 4, "groups_per_batch": 4, "warmup_steps": 0}
    plain["alarms"] = {"patience": 0}
    plain["rollout"] |= {
        "n": 3,
        "engine": {"name": "vllm", "options": {"enforce_eager": True, "max_model_len": 2048, "cache_gb": 0.25}},
    }
    file, folder = settings.write(plain, tmp_path / "run.yaml"), tmp_path / "run"
    words = ["run", "--algo", "grpo", "--rewards", "temporal_iou,mcq", "--config", str(file), "--model", str(tmp_path / "tiny")]
    with open(tmp_path / "log", "w+") as log:
        command = [sys.executable, "-m", "evr1_core", *words, "--output", str(folder)]
        run = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=log, stderr=subprocess.STDOUT)
        while len(rows_of(folder)) < 3 and run.poll() is None:
            time.sleep(0.05)
        killed = server_of(run.pid)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        assert run.wait(600) == 0, (tmp_path / "log").read_text()[-3000:]
    assert "started anew, once" in (tmp_path / "log").read_text()
    rows = [row for row in rows_of(folder) if row["step"] > 0]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert max(row["rollout_corr/logprob_diff_max"] for row in rows) < 1e-2
    assert max(row["rollout_corr/logprob_diff_mean"] for row in rows) < 1e-3
    with pytest.raises(ProcessLookupError):
        os.killpg(killed, 0)
