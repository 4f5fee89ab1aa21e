"""What docs/data.md shows is true."""

import json
import re
import shlex
from pathlib import Path

import pytest

from evr1_core.config.schema import DataConfig, KeysConfig
from evr1_core.data.prompts import PromptTemplates
from evr1_core.data.records import read_samples

PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text("utf-8")
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for name in ("clips/door.mp4", "stills/a.png", "stills/b.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(b"x")
    return read_samples(["films.jsonl"], DataConfig(keys=KeysConfig(uid="problem_id")))


def test_the_example_can_be_read(samples):
    door, choice, spiders = samples
    assert (door.uid, door.task, door.answer) == ("7", "temporal grounding", '{"time": [3.2, 5.1]}')
    assert [(media.kind, media.span) for media in choice.media] == [("image", None), ("video", (2.0, 6.0)), ("image", None)]
    assert choice.offline
    assert (spiders.answer, spiders.media) == ("16", ())


def test_the_templates_can_be_used(samples):
    made = [PromptTemplates("templates", "direct").prompt(sample).parts[-1] for sample in samples]
    assert made[0].endswith('Give the span as {"time": [start, end]}, in seconds with one decimal, between <answer> and </answer>.')
    assert made[1].endswith("A. the first\nB. the second\nAnswer with one letter between <answer> and </answer>.")


def test_the_settings_it_names_exist():
    keys = set(re.findall(r"`(data(?:\.\w+)+)", PAGE))
    known = {f"data.{name}" for name in DataConfig.__annotations__} | {f"data.keys.{name}" for name in KeysConfig.__annotations__}
    assert keys <= known


def test_the_commands_of_the_filter(tmp_path, monkeypatch, capsys):
    """As they stand, on text records and with a reward that throws dice, since the tiny model knows nothing."""
    from evr1_core.cli.main import main
    from tests.core.cli.test_filter import CONFIG, TENTHS, prepare, row, write
    from tests.tiny import tiny_folder

    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    write(Path("films.jsonl"), [row(tenths) for tenths in TENTHS])
    Path("base").symlink_to(tiny_folder())
    training = "log: {trackers: [jsonl]}\nalarms: {patience: 0}\noutput: out\n"
    Path("run.yaml").write_text(
        CONFIG.replace("model: {path: %s}\n", "").replace("threads: 1", "threads: 1, prompts_per_step: 4, steps: 1") + training
    )
    section = PAGE.partition("## Records a model can learn from")[2].partition("\n## ")[0]
    commands = re.findall(r"^evr1 (.*)$", section, re.MULTILINE)
    assert len(commands) == 3
    kept = []
    for command in commands:
        assert main(shlex.split(command, comments=True)) == 0
        kept.append(len(Path("films.kept.jsonl").read_text().splitlines()))
    assert kept[0] > kept[1] == kept[2] > 0
    assert "0 records sampled" in capsys.readouterr().out
    assert (tmp_path / "out" / "model" / "config.json").is_file()
    columns = set(json.loads(Path("films.rates.jsonl").read_text().splitlines()[0]))
    assert columns == set(re.findall(r"`(\w+)`", section.partition("has a row a record: ")[2].partition(". Rows")[0]))
