"""``evr1 doctor``: what is here, what would keep a run from working, and what to do about it."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evr1_core.config.schema import RunConfig
    from evr1_core.doctor.finding import Finding

MARKS = {"ok": " ", "note": "-", "stop": "!"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file of settings, which say where runs and cache lie")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; repeatable")


def run(args: argparse.Namespace) -> int:
    """0; 1 when something would stop a run."""
    from evr1_core.config.sources import load_config

    findings = list(examined(load_config(args.config, args.set, {})))
    print(as_json(findings) if args.json else as_text(findings))
    return 1 if any(each.level == "stop" for each in findings) else 0


def examined(config: RunConfig) -> Iterator[Finding]:
    """All findings, section by section."""
    from evr1_core.cli.cache import folder_of
    from evr1_core.doctor import imports, machine, packages, plugins
    from evr1_core.doctor.finding import Finding

    catalog = plugins.catalog()
    owners = [] if isinstance(catalog, Finding) else sorted({ref.dist for ref in catalog.refs})
    yield from packages.versions()
    yield from packages.conflicts(owners)
    tried = imports.tried(imports.steps())
    yield from imports.imported(tried)
    yield from imports.devices(tried)
    yield from imports.media(tried)
    places = {
        "runs": Path(config.output or "runs/run").parent,
        "cache": folder_of(config),
        "temporary files": Path(tempfile.gettempdir()),
    }
    yield from machine.machine(places, "vllm" in tried.found)
    yield machine.sandbox()
    yield from packages.extras()
    yield from [catalog] if isinstance(catalog, Finding) else plugins.plugins(catalog)


def as_json(findings: Sequence[Finding]) -> str:
    """A list of objects with the fields of a finding."""
    import attrs

    return json.dumps([attrs.asdict(each) for each in findings], indent=2)


def as_text(findings: Sequence[Finding]) -> str:
    """One line a finding, with ``!`` before what stops a run and ``-`` before what limits one, and the advice below it."""
    width = max(len(each.name) for each in findings if each.level == "ok")
    lines = []
    for section, rows in groupby(findings, key=lambda each: each.section):
        lines.append(section)
        for each in rows:
            lines.append(f"{MARKS[each.level]} {each.name.ljust(width)}  {each.value}")
            if each.level != "ok":
                lines.append(f"  {' ' * width}  -> {each.advice}")
        lines.append("")
    stops, notes = (sum(each.level == level for each in findings) for level in ("stop", "note"))
    lines.append(f"{stops} would stop a run (!), {notes} limit one (-)" if stops or notes else "nothing is wrong")
    return "\n".join(lines)
