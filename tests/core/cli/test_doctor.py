import json
import sys

import pytest

from evr1_core.cli import doctor
from evr1_core.cli.main import main
from evr1_core.doctor import plugins
from evr1_core.doctor.finding import Finding
from evr1_core.registry.catalog import Catalog, PluginRef

ROWS = [
    Finding("versions", "python", "3.11"),
    Finding("versions", "torch", "vllm wants another", "stop", "pip install 'torch==2.14.0'"),
    Finding("plugins", "rewards/mine (mine 1.0)", "needs evr1<0.1", "note", "update or remove mine"),
]


def test_a_finding_that_is_not_ok_says_what_to_do():
    with pytest.raises(AssertionError):
        Finding("versions", "torch", "old", "stop")


def test_text():
    assert doctor.as_text(ROWS) == (
        "versions\n"
        "  python  3.11\n"
        "! torch   vllm wants another\n"
        "          -> pip install 'torch==2.14.0'\n"
        "\n"
        "plugins\n"
        "- rewards/mine (mine 1.0)  needs evr1<0.1\n"
        "          -> update or remove mine\n"
        "\n"
        "1 would stop a run (!), 1 limit one (-)"
    )
    assert doctor.as_text(ROWS[:1]).endswith("\nnothing is wrong")


@pytest.mark.parametrize(("rows", "status"), [(ROWS, 1), (ROWS[::2], 0), (ROWS[:1], 0)])
def test_exit_status(rows, status, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examined", lambda config: iter(rows))
    assert main(["doctor", "--json"]) == status
    assert json.loads(capsys.readouterr().out)[0] == {
        "section": "versions",
        "name": "python",
        "value": "3.11",
        "level": "ok",
        "advice": "",
    }


def test_this_environment(capsys, tmp_path):
    """The tests run here, so that nothing is in the way of a run."""
    assert main(["doctor", "--json", "--set", f"cache.folder={tmp_path}/frames", "--set", f"output={tmp_path}/runs/one"]) == 0
    found = json.loads(capsys.readouterr().out)
    sections = {each["section"] for each in found}
    assert sections == {"versions", "imports", "devices", "media", "machine", "sandbox", "extras", "plugins"}
    values = {(each["section"], each["name"]): each["value"] for each in found}
    assert values["machine", "cache"].startswith(f"{tmp_path}/frames: ")
    assert values["machine", "runs"].startswith(f"{tmp_path}/runs: ")
    assert "GiB free" in values["machine", "memory"]
    assert not [each for each in found if each["level"] == "stop"]


def test_settings_that_are_wrong(capsys):
    assert main(["doctor", "--set", "cache.foldr=x"]) == 2
    assert "did you mean cache.folder?" in capsys.readouterr().err


def ref(group, name, dist, target, problem=None):
    return PluginRef(group=group, name=name, target=target, dist=dist, version="1.0", problem=problem)


def test_plugins_with_problems(tmp_path, monkeypatch):
    (tmp_path / "doctor_third.py").write_text("raise ValueError('nowhere')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    refs = (
        ref("rewards", "mcq", "evr1", "evr1_plugins.rewards.mcq:MultipleChoice"),
        ref("rewards", "mcq", "third", "evr1_plugins.rewards.mcq:MultipleChoice"),
        ref("rewards", "lost", "third", "doctor_third:Lost"),
        ref("trackers", "gone", "evr1", "evr1_plugins.trackers.gone:Gone"),
        ref("trackers", "jsonl", "old", "evr1_plugins.trackers.jsonl:JsonLines", "needs evr1<0.1, this is 0.1.0"),
    )
    rows = {each.name: each for each in plugins.plugins(Catalog(refs))}
    assert rows["installed"].value == "5, of 3 distributions"
    assert (rows["rewards/mcq (third 1.0)"].value, rows["rewards/mcq (third 1.0)"].level) == ("clash", "note")
    assert rows["rewards/mcq (third 1.0)"].advice == "say which one is meant: third/mcq"
    assert "nowhere" in rows["rewards/lost (third 1.0)"].value
    assert rows["rewards/lost (third 1.0)"].level == "note"
    assert rows["trackers/gone (evr1 1.0)"].level == "stop"  # a damaged installation
    assert rows["trackers/jsonl (old 1.0)"].value.startswith("needs evr1<0.1")
    sys.modules.pop("doctor_third", None)


def test_entry_points_that_cannot_be_read(tmp_path, monkeypatch):
    info = tmp_path / "evr1_torn-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evr1-torn\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[evr1.rewards]\nno target\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins.catalog()
    assert isinstance(found, Finding)
    assert found.level == "stop"
    assert found.value.startswith("evr1-torn 1.0: its entry points cannot be read")
