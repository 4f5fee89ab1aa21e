"""From plain values to attrs objects: types converted, checks run, and all problems reported at once, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from difflib import get_close_matches
from typing import Any, get_type_hints

import attrs

from evr1_core.api.errors import ConfigError
from evr1_core.config.convert import FAILED, Converter, Path, shown
from evr1_core.config.schema import PluginChoice, RewardChoice


@attrs.frozen
class Problem:
    """What is wrong with the setting at ``path``; ``text`` carries its place."""

    path: Path
    text: str


def build(cls: type[Any], values: Any, *, place: str = "", origins: Mapping[Path, str] | None = None) -> Any:
    """An instance of an attrs class.

    ``values``: plain data, as YAML gives it. ``place`` stands before the key in messages; ``origins`` says for a path of keys which
    file and line, or flag, it comes from. Raises ConfigError with every problem found.
    """
    builder = _Builder(cls, place, origins or {}, partly=False)
    built = builder.value(cls, values, ())
    if builder.problems:
        raise ConfigError([problem.text for problem in builder.problems])
    return built


def build_partly(cls: type[Any], values: Any, *, origins: Mapping[Path, str]) -> tuple[Any, list[Problem]]:
    """An instance in which settings with problems have their defaults, and the problems: what else is wrong can then be told too.

    For classes that have a default for every setting and do nothing but hold them.
    """
    builder = _Builder(cls, "", origins, partly=True)
    built = builder.value(cls, values, ())
    return (cls() if built is FAILED else built), builder.problems


def located(path: Path, reason: str, origins: Mapping[Path, str], place: str = "") -> str:
    """``file:line: dotted.key: reason``, with where the longest known part of the path comes from.

    A flag that names just this setting says enough: ``--train: reason``.
    """
    dotted, shown_path = dotted_key(path, place), _shown_part(path)
    for length in range(len(path), -1, -1):
        origin = origins.get(path[:length])
        if origin is not None:
            own = origin.startswith("--") and length >= len(shown_path)
            return f"{origin}: {reason}" if own else f"{origin}: {dotted}: {reason}"
    return f"{dotted}: {reason}"


def dotted_key(path: Path, place: str = "") -> str:
    """``a.b[0].c``, without the number of a list's element at the end; for the whole, ``settings``."""
    return ".".join(filter(None, (place, *_shown_part(path)))).replace(".[", "[") or "settings"


def _shown_part(path: Path) -> Path:
    return path[:-1] if path and path[-1].startswith("[") else path


class _Builder(Converter):
    """Objects of attrs classes, and what is in them. With ``partly``, settings with problems are left at their defaults."""

    def __init__(self, root: type[Any], place: str, origins: Mapping[Path, str], *, partly: bool) -> None:
        self._root, self._place, self._origins, self._partly = root, place, origins, partly
        self.problems: list[Problem] = []

    def fail(self, path: Path, reason: str) -> Any:
        self.problems.append(Problem(path, located(path, reason, self._origins, self._place)))
        return FAILED

    def attempt(self) -> _Builder:
        return _Builder(self._root, self._place, self._origins, partly=False)

    def instance(self, cls: type[Any], values: Any, path: Path) -> Any:
        """An object of an attrs class from a mapping; fields that are not given keep their defaults."""
        values = self._expanded(cls, values, path)
        if values is FAILED:
            return FAILED
        if not isinstance(values, Mapping):
            return self.fail(path, f"must be a mapping of settings; is {shown(values)}")
        fields = {field.alias or field.name: field for field in attrs.fields(cls) if field.init}
        hints = get_type_hints(cls, include_extras=True)
        count = len(self.problems)
        self._refuse_unknown(values, fields, path)
        given = {}
        for key, field in fields.items():
            if key in values:
                given[key] = self.value(hints[field.name], values[key], (*path, key))
            elif field.default is attrs.NOTHING:
                given[key] = self.fail((*path, key), "must be given")
        failed = {key for key, value in given.items() if value is FAILED}
        kept = {key: value for key, value in given.items() if key not in failed}
        refused = self._refused(cls, kept, failed, path)
        kept = {key: value for key, value in kept.items() if key not in refused}
        lacking = any(field.default is attrs.NOTHING and key not in kept for key, field in fields.items())
        if len(self.problems) > count and (lacking or not self._partly or not refused <= given.keys()):
            return FAILED
        try:
            return cls(**kept)
        except (ValueError, TypeError) as error:
            return self.fail(path, str(error))

    def _refused(self, cls: type[Any], given: Mapping[str, Any], failed: Set[str], path: Path) -> set[str]:
        """The keys that validators refuse. Every validator is asked: the class itself would stop at the first that refuses."""
        refused: set[str] = set()
        probe = object.__new__(cls)
        for field in attrs.fields(cls):
            key = field.alias or field.name
            try:
                value = _initial(field, given, probe)
                if value is attrs.NOTHING:
                    continue
                object.__setattr__(probe, field.name, value)
                if field.validator is not None and field.init and key not in failed:
                    field.validator(probe, field, value)
            except (ValueError, TypeError) as error:
                self.fail((*path, key), _reason(error, getattr(probe, field.name, given.get(key))))
                refused.add(key)
            except AttributeError:
                if not failed:  # else it looked at a setting that has no value, which is reported already
                    raise
        return refused

    def _expanded(self, cls: type[Any], values: Any, path: Path) -> Any:
        """Short forms written out: a plugin by its name alone, a reward's options without the word `options`."""
        if values is None:
            return {}
        if cls is PluginChoice and isinstance(values, str):
            return {"name": values}
        if cls is RewardChoice and isinstance(values, Mapping):
            return self._reward(values, path)
        return values

    def _reward(self, values: Mapping[str, Any], path: Path) -> Any:
        own = {key: value for key, value in values.items() if key in ("weight", "options")}
        loose = {key: value for key, value in values.items() if key not in own}
        options = own.get("options") or {}
        if not loose or not isinstance(options, Mapping):
            return own
        if twice := sorted(str(key) for key in loose.keys() & options.keys()):
            return self.fail((*path, twice[0]), "is given twice: under `options` and beside it")
        return own | {"options": {**options, **loose}}

    def _refuse_unknown(self, values: Mapping[Any, Any], fields: Mapping[str, Any], path: Path) -> None:
        for key in values:
            if key in fields:
                continue
            unknown = (*path, str(key))
            near = self._nearest(unknown, fields)
            hint = f"; did you mean {near}?" if near else f" (known: {', '.join(fields) or 'none'})"
            text = f"unknown key {dotted_key(unknown, self._place)}{hint}"
            origin = self._nearest_origin(unknown)
            self.problems.append(Problem(unknown, f"{origin}: {text}" if origin else text))

    def _nearest_origin(self, path: Path) -> str:
        """Where a path, or else what holds it, or else the first thing below it comes from."""
        above = [self._origins[path[:length]] for length in range(len(path), -1, -1) if path[:length] in self._origins]
        below = [origin for known, origin in self._origins.items() if known[: len(path)] == path]
        return next(iter([*above, *below]), "")

    def _nearest(self, path: Path, fields: Mapping[str, Any]) -> str:
        """The known key that was probably meant: one spelt alike in the same place, or one of the same name elsewhere."""
        if close := get_close_matches(path[-1], fields, 1, 0.6):
            return dotted_key((*path[:-1], close[0]), self._place)
        elsewhere = [other for other in leaves(self._root) if other[-1] == path[-1]]
        return " or ".join(dotted_key(other, self._place) for other in elsewhere[:3])


def leaves(cls: type[Any], path: Path = ()) -> list[Path]:
    """The paths of all settings of an attrs class, those of nested classes in place of the classes."""
    hints = get_type_hints(cls)
    found: list[Path] = []
    for field in attrs.fields(cls):
        if field.init:
            here = (*path, field.alias or field.name)
            kind = hints[field.name]
            found += leaves(kind, here) if attrs.has(kind) and kind is not PluginChoice else [here]
    return found


def _initial(field: Any, given: Mapping[str, Any], probe: Any) -> Any:
    """The value that the class would start from; NOTHING where there is none, or where it takes more than the value to tell."""
    key = field.alias or field.name
    value = given[key] if field.init and key in given else field.default
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        value = value.factory(probe) if value.takes_self else value.factory()
    convert: Callable[[Any], Any] | None = field.converter
    if convert is None or value is attrs.NOTHING:
        return value
    return attrs.NOTHING if isinstance(convert, attrs.Converter) else convert(value)


_LIMITS = {
    "must be > ": "must be above ",
    "must be >= ": "must be at least ",
    "must be < ": "must be below ",
    "must be <= ": "must be at most ",
}


def _reason(error: Exception, value: Any) -> str:
    """A validator's message in the words of all others."""
    text = str(error.args[0]) if error.args else str(error)
    for sign, words in _LIMITS.items():
        if sign in text:
            return f"{words}{text.split(sign, 1)[1].split(':')[0]}; is {shown(value)}"
    if " must be in " in text:
        return f"must be one of {', '.join(map(str, error.args[2]))}; is {shown(value)}"
    return text
