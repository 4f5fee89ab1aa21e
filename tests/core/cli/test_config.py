import pytest
import yaml

from evr1_core.cli.main import main
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import resolved


def test_all_settings(capsys):
    assert main(["config"]) == 0
    out = capsys.readouterr().out
    assert "train.lr: number, default 1.0e-06\n    learning rate\n" in out
    assert "rewards.NAME.options: mapping, default {}\n" in out


@pytest.mark.parametrize(("key", "first"), [("train", "train.steps"), ("train.lr", "train.lr"), ("output", "output")])
def test_some_settings(capsys, key, first):
    assert main(["config", key]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{first}: ")
    assert all(line.startswith((key, "    ")) for line in out.splitlines())


def test_an_unknown_setting(capsys):
    assert main(["config", "tran.lr"]) == 2
    assert capsys.readouterr().err == "no setting 'tran.lr'; did you mean 'train.lr'?; `evr1 config` lists all\n"


def test_forms(capsys):
    assert main(["config", "--yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["train"] == resolved(RunConfig())["train"]
    assert main(["config", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Settings\n")
