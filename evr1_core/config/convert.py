"""Plain values as the types that settings declare. Nothing is guessed: true is no number, text is one only if it reads as one."""

from __future__ import annotations

import math
import pathlib
import types
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs

Path = tuple[str, ...]
FAILED = object()  # the value could not be converted; the problem is written down
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", pathlib.Path: "a path"}
_WORDS = {True: ("on", "yes", "true"), False: ("off", "no", "false")}  # text that YAML makes a truth value of


class Converter(ABC):
    """Converts values, and has ``fail`` write down what cannot be converted."""

    problems: list[Any]

    @abstractmethod
    def fail(self, path: Path, reason: str) -> Any:
        """Writes a problem down. Returns FAILED."""

    @abstractmethod
    def attempt(self) -> Converter:
        """A converter with problems of its own, to try one of several types."""

    @abstractmethod
    def instance(self, cls: type[Any], values: Any, path: Path) -> Any:
        """An object of an attrs class."""

    def value(self, wanted: Any, value: Any, path: Path) -> Any:
        """``value`` as the type ``wanted``, or FAILED."""
        origin, arguments = get_origin(wanted), get_args(wanted)
        if wanted is Any or wanted is object:
            return value
        if origin is Annotated:
            return self.value(arguments[0], value, path)
        if origin in (Union, types.UnionType):
            return self._union(arguments, value, path)
        if origin is Literal:
            return self._literal(arguments, value, path)
        if attrs.has(wanted):
            return self.instance(wanted, value, path)
        kind = origin or wanted
        if isinstance(kind, type) and issubclass(kind, tuple) and arguments and arguments[-1] is not Ellipsis:
            return self._tuple(arguments, value, path)
        if isinstance(kind, type) and issubclass(kind, Mapping):
            return self._mapping(arguments or (str, Any), value, path)
        if isinstance(kind, type) and issubclass(kind, Sequence | Set) and not issubclass(kind, str | bytes):
            return self._collection(kind, arguments[0] if arguments else Any, value, path)
        return self._scalar(wanted, value, path)

    def _union(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if value is None and type(None) in arguments:
            return None
        choices = [argument for argument in arguments if argument is not type(None)]
        exact = [choice for choice in choices if choice is type(value)]
        for choice in [*exact, *choices[:-1]]:
            trial = self.attempt()
            converted = trial.value(choice, value, path)
            if not trial.problems:
                return converted
        return self.value(choices[-1], value, path)

    def _literal(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        if any(value == argument and type(value) is type(argument) for argument in arguments):
            return value
        if isinstance(value, bool):  # `mode: off` without quotes
            meant = [argument for argument in arguments if argument in _WORDS[value]]
            if len(meant) == 1:
                return meant[0]
        names = [str(argument) for argument in arguments]
        close = get_close_matches(str(value), names, 1, 0.6)
        near = f"; did you mean {close[0]}?" if close else ""
        return self.fail(path, f"must be one of {', '.join(names)}; is {shown(value)}{near}")

    def _tuple(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        value = _split(value)
        if not isinstance(value, list | tuple) or len(value) != len(arguments):
            return self.fail(path, f"must be a list of {len(arguments)} values; is {shown(value)}")
        parts = [
            self.value(argument, each, (*path, index(number)))
            for number, (argument, each) in enumerate(zip(arguments, value, strict=True))
        ]
        return FAILED if any(part is FAILED for part in parts) else tuple(parts)

    def _collection(self, kind: type[Any], wanted: Any, value: Any, path: Path) -> Any:
        value = _split(value)
        if not isinstance(value, list | tuple | set | frozenset):
            return self.fail(path, f"must be a list; is {shown(value)}")
        parts = [self.value(wanted, each, (*path, index(number))) for number, each in enumerate(value)]
        if any(part is FAILED for part in parts):
            return FAILED
        make = kind if kind in (tuple, list, set, frozenset) else frozenset if issubclass(kind, Set) else tuple
        return make(parts)

    def _mapping(self, arguments: tuple[Any, ...], value: Any, path: Path) -> Any:
        value = {} if value is None else value  # a section without content, as `rewards:`
        if attrs.has(arguments[1]):
            value = self._by_name(value, path)
        if value is FAILED:
            return FAILED
        if not isinstance(value, Mapping):
            return self.fail(path, f"must be a mapping; is {shown(value)}")
        built = {}
        for key, each in value.items():
            name = key if arguments[0] is str and isinstance(key, str) else self.value(arguments[0], key, path)
            built[name] = self.value(arguments[1], each, (*path, str(key)))
        return FAILED if any(each is FAILED for each in (*built, *built.values())) else built

    def _by_name(self, value: Any, path: Path) -> Any:
        """Names alone, in a list or as text with commas: everything else by default. Mappings in the list keep their settings."""
        value = _split(value)
        if not isinstance(value, list | tuple):
            return value
        named: dict[Any, Any] = {}
        for each in value:
            pairs = {each: None} if isinstance(each, str) else each
            if not isinstance(pairs, Mapping):
                return self.fail(path, f"must be names, or a mapping by name; holds {shown(each)}")
            if twice := named.keys() & pairs.keys():
                return self.fail(path, f"names {min(map(str, twice))} twice")
            named |= pairs
        return named

    def _scalar(self, wanted: Any, value: Any, path: Path) -> Any:
        converted = _plain(wanted, value)
        if converted is not FAILED:
            return converted
        name = _NAMES.get(wanted, getattr(wanted, "__name__", str(wanted)))
        quote = "; put it in quotes" if wanted in (str, pathlib.Path) and isinstance(value, bool | int | float) else ""
        return self.fail(path, f"must be {name}; is {shown(value)}{quote}")


def _plain(wanted: Any, value: Any) -> Any:
    if wanted is bool or isinstance(value, bool):
        return value if wanted is bool and isinstance(value, bool) else FAILED
    if wanted in (str, pathlib.Path) and isinstance(value, str):
        return wanted(value)
    if wanted in (int, float) and isinstance(value, str | int | float) and not (wanted is int and isinstance(value, float)):
        try:
            number = wanted(value)  # YAML reads 1e-6 as text
            return number if math.isfinite(number) else FAILED
        except (ValueError, OverflowError):
            return FAILED
    return value if wanted not in _NAMES and isinstance(wanted, type) and isinstance(value, wanted) else FAILED


def _split(value: Any) -> Any:
    """Text with commas as a list."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def index(number: int) -> str:
    """An element of a list as part of a path."""
    return f"[{number}]"


def shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Mapping):
        return "a mapping"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
