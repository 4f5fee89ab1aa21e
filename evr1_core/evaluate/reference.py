"""The page about the benchmarks, made from what their classes say of themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

from evr1_core.api import Benchmark
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.loading import load_class, options_of

_INTRO = """\
# Benchmarks

Made by `evr1 eval --list --markdown > docs/benchmarks.md` from the classes. How they are run: [evaluation.md](evaluation.md).
"""
_PART = re.compile(r"^(Data|Metric|Protocol|Pitfalls|Judge|Groups): ", re.MULTILINE)


def as_markdown(dist: str = "evr1") -> str:
    """The page: a table, then each benchmark of a distribution."""
    classes = [load_class(ref) for ref in Catalog.scan().group("benchmarks") if ref.dist == dist]
    table = ["| name | benchmark | questions | headline |", "|---|---|---|---|"]
    table += [f"| [`{cls.id}`](#{cls.id}) | {cls.title} | {cls.size:,} | {cls.metrics[0]} |" for cls in classes]
    return "\n".join([_INTRO, *table, *(line for cls in classes for line in _section(cls))]) + "\n"


def _section(cls: type[Benchmark]) -> Sequence[str]:
    lead, *parts = _PART.split(inspect.getdoc(cls) or "")
    lines = ["", f"## {cls.id}", "", _one_line(lead), ""]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    lines += [f"- **{name}**: {_one_line(text)}" for name, text in pairs]
    files = [f"`{cls.id}/{pattern}`" for pattern in cls.official] + [f"`{name}` (normalised)" for name in cls.normalised]
    lines.append(f"- **Annotations**, one of: {', '.join(files)}")
    lines += [f"- **Option** `{name}` ({kind}, {default}): {text}" for name, kind, default, text in options_of(cls)]
    own = {preset: ", ".join(f"{name} {value}" for name, value in values.items()) for preset, values in cls.protocols.items()}
    lines += [f"- **Of its own under `{preset}`**: {values}" for preset, values in own.items()]
    return lines


def _one_line(text: str) -> str:
    return " ".join(text.split())
