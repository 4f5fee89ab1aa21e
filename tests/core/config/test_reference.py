from pathlib import Path

import pytest
import yaml

from evr1_core.config import reference
from evr1_core.config.build import leaves
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import load_config

ROOT = Path(__file__).parents[3]
ENTRIES = {entry.key: entry for section in reference.sections() for entry in section.entries}


def test_the_page_is_made_from_the_settings():
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    assert page == reference.as_markdown(), "run `evr1 config --markdown > docs/config.md`"


def test_every_setting_is_listed_with_its_help():
    assert {".".join(path) for path in leaves(RunConfig)} <= ENTRIES.keys()
    assert all(entry.help and entry.kind for entry in ENTRIES.values())


@pytest.mark.parametrize(
    ("key", "kind", "default"),
    [
        ("train.lr", "number", "1.0e-06"),
        ("train.steps", "whole number or null", "null"),
        ("train.betas", "2 numbers", "[0.9, 0.999]"),
        ("data.train", "list of texts", "[]"),
        ("cache.mode", "`prefer`, `only`, `off`", "prefer"),
        ("algorithm", "plugin", "''"),
        ("log.trackers", "list of plugins", "[console, jsonl, tensorboard]"),
        ("rewards", "mapping by name", "{}"),
        ("rewards.NAME.weight", "number", "1.0"),
        ("plugins.strict", "true or false", "false"),
    ],
)
def test_types_and_defaults_in_words(key, kind, default):
    assert (ENTRIES[key].kind, ENTRIES[key].default) == (kind, default)


@pytest.mark.parametrize("key", [key for key in ENTRIES if "NAME" not in key])
def test_a_listed_default_is_what_a_file_may_say(key):
    """Each default as printed, put into a configuration by its printed key, changes nothing."""
    assert load_config(None, [f"{key}={ENTRIES[key].default}"], {}) == RunConfig()


def test_the_file_with_all_defaults_is_the_defaults(tmp_path):
    text = reference.as_yaml()
    (tmp_path / "run.yaml").write_text(text)
    assert load_config(tmp_path / "run.yaml", [], {}) == RunConfig()
    assert all(entry.help in text for key, entry in ENTRIES.items() if "NAME" not in key)


def test_tags_and_bars_survive_in_tables():
    assert reference._cell("a <b> | `c <d>`") == "a &lt;b> \\| `c <d>`"


def test_examples_on_the_page_are_valid():
    blocks = reference._INTRO.split("```yaml\n")[1:]
    for block in blocks:
        values = yaml.safe_load(block.partition("```")[0])
        assert set(values) <= {field.name for field in RunConfig.__attrs_attrs__}
