"""Listeners: modules of the group ``evr1.hooks`` that react to the events of a run, called through pluggy."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pluggy
from attrs import field, frozen

from evr1_core.api import hooks as specifications
from evr1_core.api.errors import HookError, PluginLoadError, ProblemsError
from evr1_core.registry.catalog import DISABLE, Catalog, PluginRef, disabled, is_disabled, normalised
from evr1_core.registry.loading import check_api, describe, failure, load_object

MARK = "evr1_impl"  # where hookimpl leaves its note on a function
logger = logging.getLogger("evr1")


@frozen
class Hooks:
    """The listeners of a run.

    ``names``: ``distribution:name`` and version of each. ``notes``: what was left out, and why.
    """

    manager: pluggy.PluginManager
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def call(self, event: str, **arguments: Any) -> list[Any]:
        """What the listeners of ``event`` answered, None left out. Raises HookError, naming the distribution, when one fails."""
        results: list[Any] = getattr(self.manager.hook, event)(**arguments)
        return results


def load_hooks(strict: bool = False, catalog: Catalog | None = None) -> Hooks:
    """Imports and registers every listener that is installed and not disabled.

    One that cannot be loaded, or whose functions do not fit the events, is left out, warned about and noted; with ``strict`` all of
    them are raised as one ProblemsError.
    """
    catalog = catalog or Catalog.scan()
    manager = pluggy.PluginManager("evr1")
    manager.add_hookspecs(specifications)
    problems: list[str] = []
    seen: dict[ModuleType, PluginRef] = {}
    refs = [ref for ref in catalog.group("hooks") if not is_disabled(ref.dist)]
    for ref in refs:
        try:
            _register(manager, ref, seen)
        except PluginLoadError as error:
            problems.append(str(error))
    by_label = {_label(ref): ref for ref in refs}
    problems += [str(failure(by_label[label], cause)) for label, cause in _pending(manager).items()]
    if strict and problems:
        raise ProblemsError(problems)
    for problem in problems:
        logger.warning("%s; it is left out of this run", problem)
    names = tuple(f"{_label(ref)} {ref.version}" for ref in refs if manager.has_plugin(_label(ref)))
    return Hooks(manager, names, tuple(problems + _disabled_notes(catalog)))


def load_listener(ref: PluginRef) -> ModuleType:
    """The module of one listener, checked as a run does. Raises PluginLoadError."""
    manager = pluggy.PluginManager("evr1")
    manager.add_hookspecs(specifications)
    modules: dict[ModuleType, PluginRef] = {}
    _register(manager, ref, modules)
    for cause in _pending(manager).values():
        raise failure(ref, cause)
    return next(iter(modules))


def _label(ref: PluginRef) -> str:
    return f"{ref.dist}:{ref.name}"


def _register(manager: pluggy.PluginManager, ref: PluginRef, seen: dict[ModuleType, PluginRef]) -> None:
    module = load_object(ref)
    if not isinstance(module, ModuleType):
        raise failure(ref, f"{ref.target} is not a module")
    if module in seen:
        raise failure(ref, f"its module {ref.target} is already the {seen[module]}, and would hear every event twice")
    check_api(ref, vars(module).get("api"))
    seen[module] = ref
    guarded = _guarded(module, ref)
    try:
        manager.register(guarded, _label(ref))
    except (pluggy.PluginValidationError, ValueError) as error:
        if manager.has_plugin(_label(ref)):  # pluggy registers first and validates then
            manager.unregister(name=_label(ref))
        raise failure(ref, _reason(error)) from error


def _guarded(module: ModuleType, ref: PluginRef) -> ModuleType:
    """A stand-in for the module, with its marked functions wrapped so that a failure names the distribution."""
    stand_in = ModuleType(module.__name__)
    marked = {name: value for name, value in vars(module).items() if hasattr(value, MARK)}
    if not marked:
        raise failure(ref, f"{ref.target} has no function marked @hookimpl")
    for name, function in marked.items():
        setattr(stand_in, name, _guard(function, name, ref))
    return stand_in


def _guard(function: Callable[..., Any], event: str, ref: PluginRef) -> Callable[..., Any]:
    if getattr(function, MARK).get("wrapper") or getattr(function, MARK).get("hookwrapper"):
        raise failure(ref, f"{event} is a wrapper; listeners react to an event and do not stand around other listeners")

    @functools.wraps(function)
    def guarded(*arguments: Any) -> Any:
        try:
            answer = function(*arguments)
        except Exception as error:  # foreign code: whatever it raises ends the run under its distribution's name
            raise HookError(f"{ref} failed in {event}: {describe(error, ref)}; {DISABLE}={ref.dist} leaves it out") from error
        if event.startswith("evr1_drop_") and not isinstance(answer, (set, frozenset, type(None))):
            raise HookError(f"{ref}: {event} answered with a {type(answer).__name__}; a set or None is asked for")
        return answer

    return guarded


def _pending(manager: pluggy.PluginManager) -> dict[str, str]:
    """Unregisters the listeners with a function for an event that does not exist; their labels and what is wrong."""
    found: dict[str, str] = {}
    while True:
        try:
            manager.check_pending()
        except pluggy.PluginValidationError as error:
            found[manager.get_name(error.plugin) or ""] = _reason(error)
            manager.unregister(error.plugin)
        else:
            return found


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())


def _disabled_notes(catalog: Catalog) -> list[str]:
    installed = {normalised(ref.dist) for ref in catalog.refs}
    return [
        f"{dist} is disabled by {DISABLE}" if dist in installed else f"{DISABLE} names {dist}, which has no plugins here"
        for dist in sorted(disabled())
    ]
