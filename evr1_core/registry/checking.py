"""Whether plugins can be used: what metadata says against them, and whether they are imported."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from evr1_core.api.errors import PluginError
from evr1_core.registry.catalog import PluginRef, is_disabled


def load(ref: PluginRef) -> type | ModuleType:
    """The class of a plugin, or the module of a listener. Raises PluginError."""
    if ref.group == "hooks":
        from evr1_core.registry.hooks import load_listener

        return load_listener(ref)
    from evr1_core.registry.loading import load_class

    return load_class(ref)


def failures(refs: Iterable[PluginRef]) -> dict[PluginRef, str]:
    """Imports every plugin that is not disabled: those that fail, and why."""
    found = {}
    for ref in refs:
        if not is_disabled(ref.dist):
            try:
                load(ref)
            except PluginError as error:
                found[ref] = str(getattr(error, "cause", error))
    return found
