"""``evr1 plugins``: what is installed, whether it loads, and what one plugin offers."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Sequence

from evr1_core.registry.catalog import GROUPS, Catalog, PluginRef
from evr1_core.registry.checking import failures, load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One plugin, and two ways to list all."""
    parser.add_argument("plugin", nargs="?", metavar="GROUP[/NAME]", help=f"one plugin, or one group: {', '.join(GROUPS)}")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.add_argument("--check", action="store_true", help="import every plugin; exit status 1 if one fails")


def run(args: argparse.Namespace) -> int:
    """0, or 1 when a check failed."""
    catalog = Catalog.scan()
    group, slash, name = (args.plugin or "").partition("/")
    if slash:
        print(page(catalog, group, name))
        return 0
    refs = catalog.group(group) if group else catalog.refs
    problems = {ref: catalog.problem(ref) for ref in refs}
    failed = failures(refs) if args.check else {}
    problems |= failed
    print(_as_json(refs, problems) if args.json else _as_table(refs, problems))
    return 1 if failed else 0


def _as_json(refs: Sequence[PluginRef], problems: dict[PluginRef, str | None]) -> str:
    rows = [
        {
            "group": ref.group,
            "name": ref.name,
            "target": ref.target,
            "distribution": ref.dist,
            "version": ref.version,
            "problem": problems[ref],
        }
        for ref in refs
    ]
    return json.dumps(rows, indent=2)


def _as_table(refs: Sequence[PluginRef], problems: dict[PluginRef, str | None]) -> str:
    rows = [(ref.group, ref.name, f"{ref.dist} {ref.version}", problems[ref] or "") for ref in refs]
    widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else []
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines) or "no plugins are installed"


def page(catalog: Catalog, group: str, name: str) -> str:
    """A plugin's origin, docstring and options. ``name`` may be ``distribution/name``. Raises PluginError."""
    from evr1_core.registry.loading import options_of

    ref = catalog.find(group, name)
    loaded = load(ref)
    head = f"{ref.group}/{ref.name}  {ref.origin}  {ref.target}"
    text = [head, "", inspect.cleandoc(loaded.__doc__ or "It has no docstring.")]
    if isinstance(loaded, type):
        rows = options_of(loaded)
        text += ["", "Options:" if rows else "No options."]
        text += [
            f"  {option} ({kind}, {default})" + (f": {help_text}" if help_text else "") for option, kind, default, help_text in rows
        ]
    return "\n".join(text)
