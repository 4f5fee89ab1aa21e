"""The parts of docs/rewards.md that are made, not written."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evr1_core.registry.catalog import Catalog, PluginRef
from evr1_core.registry.describe import sections

ROOT = Path(__file__).parents[3]
GENERATOR = "evr1_core.registry.describe"
PAGE = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")


def made(what: str) -> str:
    found = re.search(rf"<!-- {what} -->\n(.*?)\n?<!-- end -->", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(name="blind", scope="module")
def _blind() -> ModuleType:
    spec = importlib.util.spec_from_file_location("blind_rewards", ROOT / "benchmarks" / "blind_rewards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["blind_rewards"] = module  # attrs looks classes up there
    spec.loader.exec_module(module)
    return module


REFS = [ref for ref in Catalog.scan().group("rewards") if ref.dist == "evr1"]


@pytest.mark.parametrize("ref", REFS, ids=lambda ref: ref.name)
def test_section_is_made_from_the_plugin(ref: PluginRef) -> None:
    assert sections([ref]) in made("rewards"), f"put what `python -m {GENERATOR} rewards` prints into docs/rewards.md"


def test_sections_are_those_of_the_plugins() -> None:
    headings = [line for line in made("rewards").splitlines() if line.startswith("### ")]
    assert headings == [f"### `{ref.name}`" for ref in REFS]


def test_blind_answers_earn_what_the_page_says(blind: ModuleType) -> None:
    measured = blind.lines()
    assert made("blind answers") == blind.table(measured), (
        "run benchmarks/blind_rewards.py and put what it prints into docs/rewards.md"
    )
    earned = {(line.task, line.strategy): line for line in measured}
    for strategy in ("all letters, as a list", "all letters, as options", "A or B", "empty tags", "gold quoted in the reasoning"):
        assert earned["multiple choice", strategy].accuracy == 0.0
    assert earned["boolean", "yes and no"].accuracy == 0.0
    assert earned["spatial grounding", "a huge box"].accuracy < 1e-9
    assert earned["tracking", "one perfect frame"].accuracy < 0.15
    assert earned["svg code", "a pale wash over the sheet"].accuracy < 0.15
    assert earned["html code", "no tags"].accuracy == 0.0
    assert all(line.accuracy <= 0.6 for line in measured)
