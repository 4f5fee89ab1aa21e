"""The tutorial of docs/plugins.md, done to the letter in an environment of its own."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from evr1_core.api import hooks
from evr1_core.registry.catalog import GROUPS
from evr1_core.registry.loading import BASES

PAGE = (Path(__file__).parents[1] / "docs" / "plugins.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", PAGE.partition("## Reference")[0], re.MULTILINE | re.DOTALL)


def environment(folder):
    """A virtual environment that sees the packages of this one, so that installing into it changes nothing outside ``folder``."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    home = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (home / "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    python = shlex.quote(str(folder / "bin" / "python"))
    for name, module in (("pip", "pip"), ("evr1", "evr1_core")):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {python} -m {module} "$@"\n')
        script.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PIP_NO_INDEX": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.mark.slow
def test_the_tutorial(tmp_path):
    env = environment(tmp_path / "env")
    work = tmp_path / "work"
    work.mkdir()
    output = ""
    for language, file, text in BLOCKS:
        if file:
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_text(text)
        elif language == "bash":
            command = ["bash", "-euo", "pipefail", "-c", text]
            result = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, timeout=300)
            assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
            output = result.stdout
        elif language == "text":
            assert text in output
        else:
            assert text.strip() in (work / "evr1-reward-closeness" / "pyproject.toml").read_text()


def test_the_reference_knows_every_group_and_event():
    for group in GROUPS:
        assert f"| `{group}` | `evr1.{group}` |" in PAGE
    for group, base in BASES.items():
        assert f"| `{group}` | `evr1.{group}` | `{base.__name__}` |" in PAGE
    events = {name for name in vars(hooks) if name.startswith("evr1_")}
    listed = set(re.findall(r"^\| `(evr1_\w+)\(", PAGE, re.MULTILINE))
    assert listed == events
    for name in events:
        code = getattr(hooks, name).__code__
        assert f"`{name}({', '.join(code.co_varnames[: code.co_argcount])})`" in PAGE
