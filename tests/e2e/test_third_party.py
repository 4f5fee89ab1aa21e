"""A package of a third party, installed by pip, gives a run its reward, its algorithm and a listener."""

import json
import os
import subprocess
import sys

import pytest

WORDS = ("yes", "no", "left", "right")
ROWS = [{"id": word, "problem": f"Shout {word}!", "answer": word.upper(), "problem_type": "shouting"} for word in WORDS]
CONFIG = """\
model: {path: tiny}
data: {train: [train.jsonl], val: [val.jsonl], keys: {uid: id}, shuffle: false}
algorithm: {name: evr1-test-good/centred}
rewards:
  shout: {options: {floor: 0.5}}
train: {steps: 2, prompts_per_step: 2, lr: 1.0e-4, threads: 1}
rollout: {n: 2, max_response_tokens: 8}
log: {trackers: [{name: jsonl}]}
"""


@pytest.fixture
def work(tmp_path):
    """A folder with a tiny checkpoint, records and settings."""
    from evr1_core.registry.catalog import Catalog
    from evr1_core.registry.loading import load_class

    load_class(Catalog.scan().find("models", "evr1/qwen3_vl"))().tiny(tmp_path / "tiny", seed=0)
    for name, rows in (("train", ROWS), ("val", ROWS[:2])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "run.yaml").write_text(CONFIG)
    return tmp_path


def evr1(work, sites, *words, dists=("good",), **environment):
    path = os.pathsep.join(str(sites / dist) for dist in dists)
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **environment}
    command = [sys.executable, "-m", "evr1_core", *words]
    return subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_run_uses_it(work, sites):
    journal = work / "journal.txt"
    result = evr1(work, sites, "run", "--set", "output=out", EVR1_TEST_JOURNAL=str(journal), EVR1_TEST_DROP="left")
    assert result.returncode == 0, result.stderr
    assert journal.read_text().splitlines() == ["train 4", "val 2", "started", "step 1", "step 2", "ended None"]
    assert (work / "out" / "model" / "config.json").is_file()
    manifest = json.loads((work / "out" / "manifest.json").read_text())
    assert manifest["listeners"] == ["evr1-test-good:journal 0.3"]
    mine = {
        (each["group"], each["name"]): each["version"] for each in manifest["plugins"] if each["distribution"] == "evr1-test-good"
    }
    assert mine == {("rewards", "shout"): "0.3", ("algorithms", "evr1-test-good/centred"): "0.3"}


@pytest.mark.slow
def test_disabled_it_is_missing(work, sites):
    result = evr1(work, sites, "run", "--set", "output=out", EVR1_DISABLE="evr1-test-good")
    assert result.returncode == 2
    assert "disabled by EVR1_DISABLE" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (work / "out").exists()


@pytest.mark.slow
def test_its_failing_listener_ends_the_run_under_its_name(work, sites):
    words = ["run", "--set", "output=out", "--set", "train.steps=14", "--set", "train.prompts_per_step=1"]
    result = evr1(work, sites, *words)
    assert result.returncode == 2, result.stderr
    expected = "listener 'journal' (evr1-test-good 0.3) failed in evr1_step_ended: ZeroDivisionError: unlucky step"
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert (work / "out" / "model" / "config.json").is_file()  # what was learned is kept


@pytest.mark.slow
def test_its_neighbours_do_no_harm(work, sites):
    """One offers the same name and a model family that cannot be imported, the listener of another does not fit this evr1."""
    dists = ("good", "clash", "old")
    result = evr1(work, sites, "run", "--set", "output=out", dists=dists)
    assert result.returncode == 2
    assert "evr1-test-clash/shout or evr1-test-good/shout" in result.stderr
    assert not (work / "out").exists()
    (work / "run.yaml").write_text(CONFIG.replace("shout:", "evr1-test-good/shout:"))
    result = evr1(work, sites, "run", "--set", "output=out", dists=dists)
    assert result.returncode == 0, result.stderr
    note = "listener 'gramophone' (evr1-test-old 0.9) cannot be loaded: needs evr1<0.1, this is 0.1.0"
    assert note in json.loads((work / "out" / "manifest.json").read_text())["notes"]
    assert f"{note}; it is left out of this run" in result.stderr
