"""From a name to a plugin: import, check, build. Code of a plugin runs here and not before."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs

from evr1_core import __version__, api
from evr1_core.api.errors import Evr1Error, PluginError, PluginLoadError
from evr1_core.registry.catalog import Catalog, PluginRef, normalised

BASES: Mapping[str, type] = {
    "rewards": api.Reward,
    "benchmarks": api.Benchmark,
    "models": api.ModelFamily,
    "algorithms": api.Algorithm,
    "engines": api.RolloutEngine,
    "trackers": api.Tracker,
}
DECLARED: Mapping[str, tuple[str, ...]] = {
    "rewards": ("tasks",),
    "benchmarks": ("id", "title", "size"),
    "models": ("model_types", "grid", "box_kind"),
}
_FILE = re.compile(r"(?P<path>.+\.py):(?P<attribute>\w+)")


def resolve(group: str, name: str, catalog: Catalog | None = None) -> PluginRef:
    """The reference behind ``name``, ``distribution/name`` or ``path/to/file.py:Class``. Imports nothing; raises PluginError."""
    match = _FILE.fullmatch(name)
    if match is None:
        return (catalog or Catalog.scan()).find(group, name)
    if not Path(match["path"]).is_file():
        raise PluginError(f"{name}: there is no file {match['path']}")
    return PluginRef(group=group, name=name, target=name, dist="", version="")


def load_class(ref: PluginRef) -> type[Any]:
    """The class of a plugin of any group but hooks, imported and checked.

    It is a subclass of the group's base class, is not abstract, is an attrs class itself and says in its own body which API it was
    written against. Raises PluginLoadError.
    """
    base = BASES.get(ref.group)
    if base is None:
        raise failure(ref, f"{ref.group} have no interface in evr1 {__version__}, so none can be loaded")
    cls = load_object(ref)
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise failure(ref, f"{ref.target} is not a subclass of evr1_core.api.{base.__name__}")
    check_api(ref, vars(cls).get("api"))
    if inspect.isabstract(cls):
        raise failure(ref, f"{cls.__name__} does not define {', '.join(sorted(vars(cls)['__abstractmethods__']))}")
    if "__attrs_attrs__" not in vars(cls):
        raise failure(
            ref, f"{cls.__name__} is no attrs class; write @define(kw_only=True) above it, so that its fields become options"
        )
    missing = [attribute for attribute in DECLARED.get(ref.group, ()) if not hasattr(cls, attribute)]
    if missing:
        raise failure(ref, f"{cls.__name__} does not declare {', '.join(missing)}")
    return cls


def build_plugin(
    group: str,
    name: str,
    options: Mapping[str, Any],
    *,
    place: str,
    catalog: Catalog | None = None,
    origins: Mapping[tuple[str, ...], str] | None = None,
) -> Any:
    """An instance of the plugin called ``name``, its options checked and converted like any setting.

    Raises PluginError (unknown name, clash, broken plugin) and ConfigError (options), both carrying ``place``: the setting or flag
    that asked for the plugin. ``origins``: file and line, or flag, by the path of an option.
    """
    try:
        ref = resolve(group, name, catalog)
        cls = load_class(ref)
    except PluginError as error:
        error.args = (f"{place}: {error}", *error.args[1:])
        raise
    from evr1_core.config.build import build

    try:
        return build(cls, options, place=place, origins=origins)
    except Evr1Error:
        raise
    except Exception as error:  # the plugin's own code ran: whatever it raises is its failure, named
        raise failure(ref, describe(error, ref), place=f"{place}: ", verb="built") from error


def load_object(ref: PluginRef) -> Any:
    """What the target names, imported; unchecked. Raises PluginLoadError, also for a reference with a problem."""
    if ref.problem:
        raise failure(ref, ref.problem)
    try:
        if match := _FILE.fullmatch(ref.target):
            return getattr(_module_of_file(Path(match["path"]).resolve()), match["attribute"])
        module, _, attribute = ref.target.partition(":")
        found: Any = importlib.import_module(module.strip())
        for part in filter(None, attribute.strip().split(".")):
            found = getattr(found, part)
        return found
    except (Exception, SystemExit) as error:  # the plugin's own code ran: whatever it raises is its failure, named
        raise failure(ref, describe(error, ref)) from error


def check_api(ref: PluginRef, declared: object) -> None:
    """Raises PluginLoadError unless ``declared``, the plugin's own literal, is the API version of this core."""
    if declared is None:
        raise failure(ref, f"it does not say `api = {api.API_VERSION}` in its own body (the API version it was written against)")
    if type(declared) is not int or declared != api.API_VERSION:
        shown = declared if type(declared) is int else f"{declared!r}, not a number,"
        cause = f"it was written against API {shown} and evr1 {__version__} offers API {api.API_VERSION}"
        raise failure(ref, f"{cause}; install versions that match")


def describe(error: BaseException, ref: PluginRef) -> str:
    """The exception in one line, where it was raised, and the pip command of a missing extra."""
    machinery = ("<frozen", importlib.__file__, __file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(machinery)]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = f"{type(error).__name__}: {error}{where}"
    extra = _missing_extra(error, ref) if isinstance(error, ImportError) else None
    return f"{text}; pip install '{ref.dist}[{extra}]'" if extra else text


def failure(ref: PluginRef, cause: str, *, place: str = "", verb: str = "loaded") -> PluginLoadError:
    """The error that says which plugin of which distribution cannot be used, and why."""
    message = f"{place}{ref} cannot be {verb}: {cause}"
    return PluginLoadError(message, group=ref.group, name=ref.name, dist=ref.dist, version=ref.version, cause=cause)


def _module_of_file(path: Path) -> ModuleType:
    """The module of a file outside any package; the same module each time it is asked for."""
    name = f"_evr1_file_{path.stem}_{sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # attrs and pickle look a class up through its module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _missing_extra(error: ImportError, ref: PluginRef) -> str | None:
    """The extra of the plugin's distribution that holds the module which could not be imported."""
    from importlib.metadata import distribution

    if not error.name or not ref.dist:
        return None
    wanted = normalised(error.name.partition(".")[0])
    for line in distribution(ref.dist).requires or ():
        extra = re.search(r"""extra\s*==\s*["']([^"']+)["']""", line)
        package = re.match(r"[\w.-]+", line)
        if extra and package and normalised(package[0]) == wanted:
            return extra[1]
    return None


def options_of(cls: type[Any]) -> list[tuple[str, str, str, str]]:
    """The options of a plugin class: name, type, default in words, and help."""
    hints = get_type_hints(cls)
    return [
        (
            field.alias or field.name,
            _type_name(field.type, hints[field.name]),
            _default(field.default),
            str(field.metadata.get("help", "")),
        )
        for field in attrs.fields(cls)
        if field.init
    ]


def _type_name(annotation: object, meant: object) -> str:
    """The annotation as it is written; choices are written out, whatever name stands for them."""
    if get_origin(meant) is Literal:
        return " | ".join(repr(choice) for choice in get_args(meant))
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(default: object) -> str:
    if default is attrs.NOTHING:
        return "required"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return f"default {default.factory()!r}" if not default.takes_self else "default set by the plugin"  # type: ignore[attr-defined]
    return f"default {default!r}"
