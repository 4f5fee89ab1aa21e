"""The tutorial of docs/evaluation.md, done to the letter, and what its tables say."""

import re
import subprocess
from pathlib import Path

import pytest

from evr1_core.evaluate.reference import as_markdown
from evr1_core.evaluate.settings import PROTOCOLS
from tests.test_docs_plugins import environment

PAGE = (Path(__file__).parents[1] / "docs" / "evaluation.md").read_text("utf-8")
BLOCKS = re.findall(
    r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", PAGE.partition("## A benchmark of your own")[2], re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
@pytest.mark.timeout(300)
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
            result = subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=env, cwd=work, capture_output=True, text=True)
            assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
            output = result.stdout
        else:
            assert text.strip() in output


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_table_of_presets(name):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
    frames, decoding = PROTOCOLS[name]["frames"], PROTOCOLS[name]["decoding"]
    assert f"up to {frames['video_max_frames']} " in line
    assert f"| {frames['video_max_pixels']:,}; {frames['video_total_pixels']:,} |" in line
    assert f"| {decoding['max_tokens']:,} |" in line


def test_the_page_of_benchmarks():
    page = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text("utf-8")
    assert page == as_markdown(), "run `evr1 eval --list --markdown > docs/benchmarks.md`"
