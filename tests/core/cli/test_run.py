import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from evr1_core.cli import main as cli
from evr1_core.cli import run as command

ROOT = Path(__file__).parents[3]
COMPLETE = ["--algo", "grpo", "--rewards", "temporal_iou,mcq", "--model", "m", "--train", "a.jsonl", "b.jsonl,c.jsonl"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def trained(monkeypatch):
    """What the training function was called with, in place of training."""
    import evr1_core.train.run

    calls = []
    monkeypatch.setattr(evr1_core.train.run, "run", calls.append)
    return calls


def evr1(capsys, *words):
    """(status, stdout, stderr) of `evr1 run`."""
    status = cli.main(["run", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_without_anything_all_that_is_missing_is_listed(capsys):
    status, out, err = evr1(capsys)
    assert (status, out) == (2, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["algorithm", "model.path", "data.train", "rewards"]


def test_a_dry_run_prints_settings_and_versions(capsys):
    status, out, err = evr1(capsys, *COMPLETE, "--set", "train.lr=2e-6", "--dry-run", "--no-files")
    assert (status, err) == (0, "")
    settings = yaml.safe_load(out)
    assert settings["train"]["lr"] == 2e-6
    assert settings["data"]["train"] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert list(settings["rewards"]) == ["temporal_iou", "mcq"]
    assert "# rewards/temporal_iou: evr1 0.1.0" in out.splitlines()
    assert "torch 2." in out.splitlines()[-1]


def test_what_a_dry_run_prints_is_a_configuration(capsys):
    _, first, _ = evr1(capsys, *COMPLETE, "--dry-run", "--no-files")
    Path("run.yaml").write_text(first)
    _, second, _ = evr1(capsys, "--dry-run", "--no-files")
    assert first == second


def test_run_yaml_is_read_where_it_exists(capsys):
    Path("run.yaml").write_text("train: {sed: 1}\n")
    Path("other.yaml").write_text("train: {lt: 1}\n")
    assert "run.yaml:1: unknown key train.sed; did you mean train.seed?" in evr1(capsys)[2].splitlines()
    err = evr1(capsys, "--config", "other.yaml")[2]
    assert "other.yaml:1: unknown key train.lt" in err
    assert "run.yaml" not in err


def test_files_are_asked_for_unless_told_otherwise(capsys):
    status, out, err = evr1(capsys, *COMPLETE, "--dry-run")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "--train: there is no file a.jsonl",
        "--train: there is no file b.jsonl",
        "--train: there is no file c.jsonl",
        "--model: m is no checkpoint folder (config.json is missing); nothing is downloaded",
    ]


def test_no_files_is_for_dry_runs(capsys):
    status, _, err = evr1(capsys, *COMPLETE, "--no-files")
    assert (status, err) == (2, "--no-files: goes with --dry-run; a run needs its files\n")


def test_the_run_gets_the_settings_and_a_folder(trained):
    Path("m").mkdir()
    Path("m/config.json").write_text("{}")
    for name in "abc":
        Path(f"{name}.jsonl").write_text("{}")
    assert cli.main(["run", *COMPLETE, "--set", "rollout.n=4", "--output", "out"]) == 0
    assert cli.main(["run", *COMPLETE]) == 0
    assert [config.rollout.n for config in trained] == [4, 8]
    assert trained[0].output == "out"
    assert trained[1].output.startswith("runs/grpo-20")


def test_folders_do_not_collide(monkeypatch):
    first = command._folder("dist/grpo")
    Path(first).mkdir(parents=True)
    again = command._folder("dist/grpo")
    assert again != first
    assert Path(again).parent == Path("runs")
    assert command._folder("some/mine.py:Mine").startswith("runs/mine-Mine-")


def test_nothing_is_written_when_settings_are_wrong(capsys, trained):
    assert evr1(capsys, *COMPLETE, "--output", "out")[0] == 2
    assert list(Path().iterdir()) == []
    assert trained == []


def test_wrong_settings_load_neither_model_nor_transformers():
    code = f"""
        import json, sys
        from evr1_core.cli.main import main
        main({["run", *COMPLETE, "--dry-run", "--no-files", "--set", "model.family=qwen3_vl"]!r})
        print("\\n" + json.dumps(sorted(sys.modules)))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    loaded = json.loads(out.splitlines()[-1])
    assert not {"transformers", "vllm", "ray", "av", "evr1_plugins.engines.hf", "evr1_plugins.models.qwen3_vl"} & set(loaded)


def test_settings_alone_load_no_torch():
    code = (
        "import sys, evr1_core.config.checks, evr1_core.config.manifest, evr1_core.config.reference; print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert out == "False\n"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_examples_pass_as_far_as_files_exist(path, capsys):
    status, out, err = evr1(capsys, "--config", str(path), "--dry-run", "--no-files")
    assert (status, err) == (0, "")
    assert yaml.safe_load(out)["algorithm"]["name"]


def test_the_published_recipe(capsys):
    """Section 8 of the algorithm's description: the numbers, and that nothing else than files is missing elsewhere."""
    path = ROOT / "examples" / "qwen3_vl_8b_video.yaml"
    settings = yaml.safe_load(evr1(capsys, "--config", str(path), "--dry-run", "--no-files")[1])
    assert settings["algorithm"]["name"] == "grpo"
    options = settings["algorithm"]["options"]
    assert (options["clip_low"], options["clip_high"], options["dual_clip"], options["aggregation"]) == (
        0.2,
        0.28,
        3.0,
        "token-mean",
    )
    rollout, train = settings["rollout"], settings["train"]
    assert (rollout["n"], rollout["temperature"], rollout["top_p"], rollout["max_response_tokens"]) == (8, 1.0, 1.0, 4096)
    assert (train["prompts_per_update"] or train["prompts_per_step"], train["ppo_epochs"], train["lr"]) == (256, 1, 1e-6)
    err = evr1(capsys, "--config", str(path), "--dry-run")[2]
    assert all("there is no" in line or "is no checkpoint folder" in line for line in err.splitlines())
