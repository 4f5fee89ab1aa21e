"""From plain values to attrs objects: types converted, checks run, and all problems reported at once, each with its place."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from evr1_core.api.errors import ConfigError

Path = tuple[str, ...]
_FAILED = object()  # the value could not be converted; the problem is written down


def build(cls: type[Any], values: Any, *, place: str = "", origins: Mapping[Path, str] | None = None) -> Any:
    """An instance of an attrs class.

    ``values``: plain data, as YAML gives it. ``place`` stands before the key in messages; ``origins`` says for a path of keys which
    file and line, or flag, it comes from. Raises ConfigError with every problem found.
    """
    builder = _Builder(place, origins or {})
    built = builder.instance(cls, values, ())
    if builder.problems:
        raise ConfigError(builder.problems)
    return built


class _Builder:
    def __init__(self, place: str, origins: Mapping[Path, str]) -> None:
        self._place, self._origins = place, origins
        self.problems: list[str] = []

    def instance(self, cls: type[Any], values: Any, path: Path) -> Any:
        """An object of an attrs class from a mapping; fields that are not given keep their defaults."""
        values = _shorthand(cls, values)
        if not isinstance(values, Mapping):
            return self._fail(path, f"must be a mapping of settings; is {_shown(values)}")
        fields = {field.alias or field.name: field for field in attrs.fields(cls) if field.init}
        hints = get_type_hints(cls)
        self._refuse_unknown(values, fields, path)
        count = len(self.problems)
        given = {
            key: self.value(hints[field.name], values[key], (*path, key), optional=field.default is None)
            for key, field in fields.items()
            if key in values
        }
        for key, field in fields.items():
            if key not in values and field.default is attrs.NOTHING:
                self._fail((*path, key), "must be given")
        if len(self.problems) > count:
            return _FAILED
        return self._checked(cls, fields, given, path)

    def value(self, wanted: Any, value: Any, path: Path, *, optional: bool = False) -> Any:
        """``value`` as the type ``wanted``."""
        if wanted is Any:
            return value
        origin, arguments = get_origin(wanted), get_args(wanted)
        if origin in (Union, types.UnionType):
            return self._union(arguments, value, path)
        if origin is Literal:
            return value if value in arguments and type(value) is not float else self._not_among(arguments, value, path)
        if attrs.has(wanted):
            return self.instance(wanted, value, path)
        if origin is tuple:
            return self._tuple(arguments, value, path)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(arguments, value, path)
        if origin is not None and issubclass(origin, (list, Sequence, frozenset, set)):
            return self._collection(origin, arguments, value, path)
        return self._scalar(wanted, value, path)

    def _checked(self, cls: type[Any], fields: Mapping[str, Any], given: dict[str, Any], path: Path) -> Any:
        """The instance; a validator that refuses names its setting."""
        try:
            return cls(**given)
        except (ValueError, TypeError) as error:
            refused = next((key for key, field in fields.items() if key in given and _refuses(cls, field, given[key], given)), None)
            where = (*path, refused) if refused else path
            return self._fail(where, _reason(error, given.get(refused) if refused else None))

    def _refuse_unknown(self, values: Mapping[Any, Any], fields: Mapping[str, Any], path: Path) -> None:
        for key in values:
            if key not in fields:
                close = get_close_matches(str(key), fields, 1, 0.6)
                near = f"; did you mean {self._dotted((*path, close[0]))}?" if close else f" (known: {', '.join(fields)})"
                origin = self._origin((*path, str(key)))
                self.problems.append(f"{origin}unknown key {self._dotted((*path, str(key)))}{near}")

    def _union(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if value is None and type(None) in arguments:
            return None
        choices = [argument for argument in arguments if argument is not type(None)]
        for choice in choices[:-1]:
            attempt = _Builder(self._place, self._origins)
            converted = attempt.value(choice, value, path)
            if not attempt.problems:
                return converted
        return self.value(choices[-1], value, path)

    def _tuple(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return self._collection(tuple, arguments[:1], value, path)
        if not isinstance(value, list | tuple) or len(value) != len(arguments):
            return self._fail(path, f"must be a list of {len(arguments)} values; is {_shown(value)}")
        pairs = enumerate(zip(arguments, value, strict=True))
        return tuple(self.value(argument, each, (*path, str(place))) for place, (argument, each) in pairs)

    def _collection(self, kind: Any, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple | set | frozenset):
            return self._fail(path, f"must be a list; is {_shown(value)}")
        make = kind if kind in (tuple, list, set, frozenset) else tuple
        return make(self.value(arguments[0], each, (*path, str(place))) for place, each in enumerate(value))

    def _mapping(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value) and attrs.has(arguments[1]):
            value = {each: {} for each in value}  # names alone: everything else by default
        if not isinstance(value, Mapping):
            return self._fail(path, f"must be a mapping; is {_shown(value)}")
        return {str(key): self.value(arguments[1], each, (*path, str(key))) for key, each in value.items()}

    def _scalar(self, wanted: Any, value: Any, path: Path) -> Any:
        if wanted is bool:
            return value if isinstance(value, bool) else self._fail(path, f"must be true or false; is {_shown(value)}")
        if isinstance(value, bool):
            return self._fail(path, f"must be {_NAMES.get(wanted, wanted)}; is {_shown(value)}")
        if wanted is int and isinstance(value, int):
            return value
        if wanted is float and isinstance(value, int | float):
            return float(value)
        if wanted is str and isinstance(value, str):
            return value
        if wanted in (int, float) and isinstance(value, str):
            try:
                return wanted(value)  # YAML reads 1e-6 as text
            except ValueError:
                pass
        return self._fail(path, f"must be {_NAMES.get(wanted, wanted)}; is {_shown(value)}")

    def _not_among(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        close = get_close_matches(str(value), [str(argument) for argument in arguments], 1, 0.6)
        near = f"; did you mean {close[0]}?" if close else ""
        return self._fail(path, f"must be one of {', '.join(map(str, arguments))}; is {_shown(value)}{near}")

    def _fail(self, path: Path, reason: str) -> Any:
        self.problems.append(f"{self._origin(path)}{self._dotted(path)}: {reason}")
        return _FAILED

    def _dotted(self, path: Path) -> str:
        return ".".join(filter(None, (self._place, *path))) or "settings"

    def _origin(self, path: Path) -> str:
        """Where the longest part of a path that is known comes from."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._origins:
                return f"{self._origins[path[:length]]}: "
        return ""


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _shorthand(cls: type[Any], values: Any) -> Any:
    """A plugin may be given by its name alone."""
    names = {field.name for field in attrs.fields(cls)}
    if isinstance(values, str) and names == {"name", "options"}:
        return {"name": values}
    return {} if values is None else values


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value) if not isinstance(value, Mapping) else "a mapping"


def _refuses(cls: type[Any], field: Any, value: Any, given: Mapping[str, Any]) -> bool:
    """This value alone makes the class refuse: its validator raises on an otherwise default object."""
    if field.validator is None:
        return False
    required = {
        other.alias or other.name: given.get(other.alias or other.name)
        for other in attrs.fields(cls)
        if other.init and other.default is attrs.NOTHING
    }
    try:
        cls(**(required | {field.alias or field.name: value}))
    except (ValueError, TypeError):
        return True
    return False


def _reason(error: Exception, value: Any) -> str:
    text = str(error.args[0]) if error.args else str(error)
    limits = {
        "must be > ": "must be above ",
        "must be >= ": "must be at least ",
        "must be < ": "must be below ",
        "must be <= ": "must be at most ",
    }
    for sign, words in limits.items():
        if sign in text:
            return f"{words}{text.split(sign, 1)[1].split(':')[0]}; is {value!r}"
    return text
