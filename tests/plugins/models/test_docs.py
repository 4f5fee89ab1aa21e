"""The table of docs/models.md says what the classes say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evr1_core.api import ModelFamily
from evr1_core.cli.main import main
from tests.plugins.models.made_up import FAMILIES, made_up
from tests.tiny import tiny_model

PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
TABLE = {row[0]: dict(zip(FAMILIES, row[1:], strict=True)) for row in ROWS if len(row) == 5}
YES = {True: "yes", False: "no"}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_table_of_what_differs(name):
    family, processor, _ = tiny_model(name)
    deepstack = made_up(name, "image").family.vision(tiny_model(name)[2], *family.dummy_patches(tiny_model(name)[2])).deepstack
    facts = {
        "": f"`{name}`",
        "`model_type`": ", ".join(f"`{each}`" for each in sorted(family.model_types)),
        "patch, pixels": str(family.grid.patch),
        "merge, patches a side": str(family.grid.merge),
        "sides of frames are multiples of, pixels": str(family.grid.factor),
        "temporal patch, frames": str(family.grid.temporal),
        "boxes are in": {"norm1000": "0 to 1000", "resized": "pixels of the resized frame"}[family.box_kind],
        "time is told by": {"none": "nothing"}.get(family.time, family.time),
        "features for the first text layers": YES[bool(deepstack)],
        "a prompt is computed once for its n responses": YES[family.shared_prefix],
        "the chat template of the tiny checkpoint opens `<think>`": YES[family.opens_thinking(processor)],
    }
    assert {key: TABLE[key][name] for key in facts} == facts


def test_what_must_be_written_is_what_is_abstract():
    needed = PAGE.partition("What you must write:")[2].partition("What the base class does")[0]
    assert set(re.findall(r"^\| `(\w+)\(", needed, re.MULTILINE)) == ModelFamily.__abstractmethods__
    every = {name for name, value in vars(ModelFamily).items() if callable(value) and not name.startswith("_")}
    rest = PAGE.partition("What the base class does")[2]
    assert {name for name in every - ModelFamily.__abstractmethods__ if f"`{name}" not in rest} == set()


def test_the_page_shows_commands_that_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "evr1 new model pebble\n" in PAGE
    assert main(["new", "model", "pebble"]) == 0
    assert (tmp_path / "evr1-model-pebble" / "evr1_model_pebble.py").is_file()
    assert "evr1-model-pebble/evr1_model_pebble.py:Pebble" in PAGE
