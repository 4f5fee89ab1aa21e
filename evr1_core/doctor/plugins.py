"""Plugins that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

from evr1_core.api.errors import PluginError
from evr1_core.doctor.finding import Finding
from evr1_core.registry.catalog import Catalog, PluginRef
from evr1_core.registry.checking import failures


def catalog() -> Catalog | Finding:
    """What is installed, or that this cannot be read."""
    try:
        return Catalog.scan()
    except PluginError as error:
        return Finding("plugins", "entry points", str(error), "stop", "no command finds a plugin until that is done")


def plugins(found: Catalog) -> Iterator[Finding]:
    """How many there are, then each that has a problem or cannot be imported.

    A built-in one is a damaged installation; another ends only the runs that name it, and a listener is left out unless
    ``plugins.strict`` is set.
    """
    yield Finding("plugins", "installed", f"{len(found.refs)}, of {len({ref.dist for ref in found.refs})} distributions")
    failed = failures(found.refs)
    for ref in found.refs:
        for problem in filter(None, (found.problem(ref) if ref not in failed else None, failed.get(ref))):
            stops = ref in failed and ref.dist == "evr1"
            yield Finding(
                "plugins", f"{ref.group}/{ref.name} ({ref.origin})", problem, "stop" if stops else "note", _advice(ref, problem)
            )


def _advice(ref: PluginRef, problem: str) -> str:
    if ref.dist == "evr1":
        return "install evr1 again: docs/install.md"
    if problem.startswith("disabled by"):
        return "take it out of EVR1_DISABLE to use it"
    if problem.startswith("clash"):
        return f"say which one is meant: {ref.dist}/{ref.name}"
    return f"update or remove {ref.dist}; until then, runs that need it do not start"
