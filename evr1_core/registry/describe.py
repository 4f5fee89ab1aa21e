"""Pages about plugins, made from their docstrings and options: `python -m evr1_core.registry.describe rewards` prints one.

Algorithms share most of their options: `python -m evr1_core.registry.describe algorithms` prints sections without, and one table.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from evr1_core.registry.catalog import Catalog, PluginRef
from evr1_core.registry.loading import load_class, options_of

NEEDS = {
    "components": "reward components",
    "critic": "a critic",
    "greedy_baseline": "a greedy response to every prompt",
    "offline": "stored trajectories",
}


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


def algorithm_section(name: str, cls: type[Any]) -> str:
    """The section of one algorithm: docstring, what it needs, presets. Options stand in ``options_table``."""
    facts = [f"needs {' and '.join(NEEDS[each] for each in sorted(cls.needs))}"] if cls.needs else []
    facts += [f"{cls.min_group} responses a prompt at least"] if cls.min_group > 1 else []
    facts += [f"presets: {', '.join(f'`{key}: {_plain(value)}`' for key, value in cls.presets.items())}"] if cls.presets else []
    parts = [f"### `{name}`", as_markdown(inspect.cleandoc(cls.__doc__ or ""))]
    return "\n\n".join([*parts, *([f"*{'; '.join(facts)}.*"] if facts else [])])


def options_table(classes: Mapping[str, type[Any]]) -> str:
    """One row an option of any of the classes: type, meaning, and its default in each class that has it."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for name, cls in classes.items():
        for row in options_of(cls):
            rows.setdefault(_row(*row), []).append(name)
    lines = ["| option | algorithms | type | default | meaning |", "|---|---|---|---|---|"]
    for (option, kind, default, help_text), names in sorted(rows.items(), key=lambda item: (item[0][0], -len(item[1]))):
        cells = (option, _listed(names, list(classes)), kind, default, help_text)
        lines.append(f"| {' | '.join(_cell(text) for text in cells)} |")
    return "\n".join(lines)


def _listed(names: Sequence[str], every: Sequence[str]) -> str:
    """The names, or those that are missing, whichever are fewer."""
    missing = [name for name in every if name not in names]
    return f"all but {', '.join(missing)}" if len(missing) < len(names) else ", ".join(names)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
        refs = [ref for ref in catalog.group(group) if ref.dist == "evr1"]
        if group == "algorithms":
            classes = {ref.name: load_class(ref) for ref in refs}
            print("\n\n".join(algorithm_section(name, cls) for name, cls in classes.items()))
            print(f"\n{options_table(classes)}")
        else:
            print(sections(refs))


if __name__ == "__main__":
    main(sys.argv[1:])
