"""Pages about plugins, made from their docstrings and options: `python -m evr1_core.registry.describe rewards` prints one."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from typing import Any

from evr1_core.registry.catalog import Catalog, PluginRef
from evr1_core.registry.loading import load_class, options_of


def sections(refs: Sequence[PluginRef]) -> str:
    """One Markdown section a plugin: name, what it serves, docstring, options. Raises PluginError for one that does not load."""
    return "\n\n".join(section(ref.name, load_class(ref)) for ref in refs)


def section(name: str, cls: type[Any]) -> str:
    """The section of one plugin class."""
    parts = [f"### `{name}`"]
    if tasks := getattr(cls, "tasks", None):
        parts.append(f"Problem types: {', '.join(f'`{task}`' for task in sorted(tasks))}.")
    parts.append(as_markdown(inspect.cleandoc(cls.__doc__ or "")))
    rows = options_of(cls)
    if rows:
        lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(_cell(text) for text in _row(*row))} |" for row in rows]
        parts.append("\n".join(lines))
    else:
        parts.append("No options.")
    return "\n\n".join(parts)


def as_markdown(docstring: str) -> str:
    """A docstring with its double backquotes as single ones and each paragraph on one line."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))
    return "\n\n".join(re.sub(r"``(.+?)``", r"`\1`", paragraph) for paragraph in paragraphs)


def _row(name: str, kind: str, default: str, help_text: str) -> tuple[str, str, str, str]:
    return f"`{name}`", f"`{kind}`", f"`{default.removeprefix('default ')}`", help_text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(argv: Sequence[str]) -> None:
    """Prints the sections of the built-in plugins of the groups that are named."""
    catalog = Catalog.scan()
    for group in argv:
        print(sections([ref for ref in catalog.group(group) if ref.dist == "evr1"]))


if __name__ == "__main__":
    main(sys.argv[1:])
