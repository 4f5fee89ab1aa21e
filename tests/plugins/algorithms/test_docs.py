"""The parts of docs/algorithms.md that are made, not written."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from evr1_core.registry.catalog import Catalog
from evr1_core.registry.describe import algorithm_section, options_table
from evr1_core.registry.loading import load_class

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
CLASSES = {ref.name: load_class(ref) for ref in Catalog.scan().group("algorithms") if ref.dist == "evr1"}
ADVICE = "put what `python -m evr1_core.registry.describe algorithms` prints into docs/algorithms.md"


def made(what):
    found = re.search(rf"<!-- {what} -->\n(.*?)\n?<!-- end -->", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", CLASSES)
def test_section_is_made_from_the_plugin(name):
    assert algorithm_section(name, CLASSES[name]) in made("algorithms"), ADVICE


def test_sections_are_those_of_the_plugins():
    assert re.findall(r"^### `(\w+)`", made("algorithms"), re.MULTILINE) == list(CLASSES)


def test_the_table_of_options_is_that_of_the_plugins():
    assert made("algorithms").endswith(options_table(CLASSES)), ADVICE


def test_components_are_worth_what_the_page_says():
    path = ROOT / "benchmarks" / "components.py"
    spec = importlib.util.spec_from_file_location("components", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["components"] = module  # attrs looks classes up there
    spec.loader.exec_module(module)
    assert made("components") == module.table(), "run benchmarks/components.py and put what it prints into docs/algorithms.md"
    worth = {(line.scale, line.algorithm): line for line in module.lines()}
    assert worth[0.01, "grpo"].other < 0.05  # lost
    assert all(abs(line.other - line.accuracy) < 0.02 for line in worth.values() if line.algorithm == "gdpo")  # the same say
