import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from evr1_core.api import PluginError
from evr1_core.config.manifest import as_yaml, manifest, write_manifest
from evr1_core.config.sources import load_config, resolved

SETS = ["algorithm=grpo", "rewards=[evr1/mcq]", "log.trackers=jsonl", "output=out"]


def test_the_run_folder_says_what_ran(tmp_path):
    config = load_config(None, SETS, {})
    write_manifest(tmp_path, config, ["a note"], ["listener 1.0"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "manifest.json"]
    assert load_config(tmp_path / "config.yaml", [], {}) == config
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert (written["notes"], written["listeners"]) == (["a note"], ["listener 1.0"])
    assert written["packages"]["torch"] == version("torch")
    assert written["packages"]["transformers"] == version("transformers")
    assert written["packages"]["evr1"] == version("evr1")
    found = {(each["group"], each["name"]): (each["distribution"], each["version"]) for each in written["plugins"]}
    assert found == {
        ("algorithms", "grpo"): ("evr1", version("evr1")),
        ("engines", "hf"): ("evr1", version("evr1")),
        ("trackers", "jsonl"): ("evr1", version("evr1")),
        ("rewards", "evr1/mcq"): ("evr1", version("evr1")),
    }


def test_a_third_party_plugin_has_its_own_version(install):
    install("good")
    config = load_config(None, [*SETS, "rewards=[shout]"], {})
    mine = next(each for each in manifest(config)["plugins"] if each["group"] == "rewards")
    assert (mine["distribution"], mine["version"]) == ("evr1-test-good", "0.3")


def test_a_file_is_named_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("x = 1\n")
    config = load_config(None, [*SETS, "rewards={mine.py:Mine: {}}"], {})
    mine = next(each for each in manifest(config)["plugins"] if each["group"] == "rewards")
    assert mine["sha256"] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert mine["distribution"] == ""


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    config = load_config(None, [*SETS, "rewards=[nothing]"], {})
    with pytest.raises(PluginError):
        write_manifest(tmp_path, config)
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_manifest(tmp_path, load_config(None, SETS, {}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "manifest.json"]


def test_yaml_holds_every_setting():
    config = load_config(None, [*SETS, "data.train=[été.json]"], {})
    assert yaml.safe_load(as_yaml(config)) == resolved(config)
    assert "été.json" in as_yaml(config)
