"""What docs/data.md shows is true."""

import re
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
