import json
import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from evr1_core.api import ConfigError, Evr1Error
from evr1_core.cli import main as cli

HEAVY = ("torch", "transformers", "vllm", "ray", "torchvision", "numpy", "av")


def evr1(*words, **environment):
    command = [sys.executable, "-m", "evr1_core", *words]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", [["--help"], ["plugins"], ["plugins", "--json"], ["new", "--help"], ["--version"]])
def test_nothing_heavy_is_imported(words):
    code = f"""
        import json, sys
        from evr1_core.cli.main import main
        try:
            main({words!r})
        except SystemExit as end:
            assert end.code in (0, None), end.code
        print("\\n" + json.dumps(sorted(sys.modules)))
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    loaded = json.loads(out.splitlines()[-1])
    assert "evr1_core.cli.main" in loaded
    assert not [name for name in HEAVY if name in loaded]
    assert not [name for name in loaded if name.startswith("evr1_plugins")]


@pytest.mark.parametrize(("words", "limit"), [(("--help",), 0.4), (("plugins",), 0.6)])
def test_start_up_time(words, limit):
    """Seconds of processor time: on an idle machine that is the time to wait, and a busy one does not change it much."""
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert evr1(*words).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) <= limit


def test_help_lists_every_command():
    out = evr1("--help").stdout
    for name, help_text in cli.COMMANDS:
        assert f"{name} " in out
        assert help_text in out


@pytest.mark.parametrize("name", [name for name, _ in cli.COMMANDS])
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"])
    assert caught.value.code == 0
    assert f"usage: evr1 {name}" in capsys.readouterr().out


def test_an_unknown_command_gets_the_nearest():
    result = evr1("plugns")
    assert result.returncode == 2
    assert "no command 'plugns'; did you mean 'plugins'?" in result.stderr
    assert evr1().returncode == 2


class Failing:
    """A command whose run raises what it is told to."""

    def __init__(self, error):
        self.error = error

    def add_arguments(self, parser):
        pass

    def run(self, args):
        raise self.error


def test_bad_input_is_a_message_and_status_2(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_load", lambda name: Failing(ConfigError(["run.yaml:1: a", "run.yaml:2: b"])))
    assert cli.main(["run"]) == 2
    assert capsys.readouterr() == ("", "run.yaml:1: a\nrun.yaml:2: b\n")


def test_debugging_keeps_the_traceback(monkeypatch):
    monkeypatch.setattr(cli, "_load", lambda name: Failing(Evr1Error("x")))
    monkeypatch.setenv("EVR1_DEBUG", "1")
    with pytest.raises(Evr1Error):
        cli.main(["run"])


def test_a_defect_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(cli, "_load", lambda name: Failing(ZeroDivisionError("x")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["run"])


def test_interruption_is_status_130(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_load", lambda name: Failing(KeyboardInterrupt()))
    assert cli.main(["run"]) == 128 + signal.SIGINT
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_went_away_is_no_traceback():
    shell = f"{sys.executable} -m evr1_core plugins --json | true"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr
