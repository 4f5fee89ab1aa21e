"""A family of somebody else is one file: the one that `evr1 new model` writes, used without being installed."""

from __future__ import annotations

import json

import pytest

from evr1_core.cli.main import main
from evr1_core.cli.new import write_package
from evr1_core.demo import settings
from evr1_core.demo.dataset import write_dataset
from evr1_core.registry.loading import build_plugin
from evr1_core.testing import check_model_family


@pytest.fixture
def plugin(tmp_path):
    """Where the file says that its class is."""
    return f"{write_package('model', 'pebble', tmp_path) / 'evr1_model_pebble.py'}:Pebble"


def test_it_keeps_the_contract(plugin, tmp_path):
    check_model_family(build_plugin("models", plugin, {}, place="test"), tmp_path / "tiny")


def test_it_is_trained_like_any_other(plugin, tmp_path):
    data = write_dataset(tmp_path / "data", train_films=2, val_films=1, seed=4)
    build_plugin("models", plugin, {}, place="test").tiny(tmp_path / "tiny")
    plain = settings.reinforcement(data, 0)
    plain["model"] = {"path": str(tmp_path / "tiny"), "family": {"name": plugin}}
    plain["train"] |= {"steps": 1, "prompts_per_step": 2, "warmup_steps": 0}
    plain["rollout"] |= {"n": 2, "max_response_tokens": 8, "max_prompt_tokens": 4096}
    plain["log"] |= {"trackers": ["jsonl"]}
    plain["val"] = {"max_samples": 2}
    file = settings.write(plain, tmp_path / "run.yaml")
    words = ["--rewards", "temporal_iou,mcq", "--config", str(file), "--output", str(tmp_path / "out")]
    assert main(["run", "--algo", "grpo", *words]) == 0
    last = json.loads((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["training/global_step"] == 1
    assert (tmp_path / "out" / "model" / "model.safetensors").is_file()
