"""Where settings come from: defaults, the algorithm's presets, a YAML file, ``--set``, named flags; the later one wins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import yaml

from evr1_core.api.errors import ConfigError, Evr1Error
from evr1_core.config.build import Problem, build_partly
from evr1_core.config.convert import Path as KeyPath
from evr1_core.config.schema import PluginChoice, RunConfig
from evr1_core.config.yamls import read_yaml

FLAGS = {"algorithm": "algo", "model.path": "model", "data.train": "train", "data.val": "val"}  # others are called like their key


@attrs.frozen
class Loaded:
    """The settings, where each comes from, and the problems. A setting with a problem has its default."""

    config: RunConfig
    origins: Mapping[KeyPath, str]
    problems: Sequence[Problem]


def load_config(file: Path | None, sets: Sequence[str], flags: Mapping[str, Any]) -> RunConfig:
    """The settings of a run.

    ``sets``: ``a.b=value`` with the value as YAML. ``flags``: dotted key to value; None leaves a setting alone. Raises ConfigError
    with all problems, each with its place.
    """
    loaded = load(file, sets, flags)
    if loaded.problems:
        raise ConfigError([problem.text for problem in loaded.problems])
    return loaded.config


def load(file: Path | None, sets: Sequence[str], flags: Mapping[str, Any]) -> Loaded:
    """As :func:`load_config`, with the problems returned. Raises ConfigError only for a file that cannot be read."""
    source = gathered(RunConfig, file, sets, flags)
    source.take_presets()
    config, problems = build_partly(RunConfig, source.values, origins=source.origins)
    return Loaded(config, source.origins, [*source.problems, *problems])


def gathered(root: type[Any], file: Path | None, sets: Sequence[str], flags: Mapping[str, Any]) -> Sources:
    """The values that file, ``--set`` and flags give for settings of the class ``root``, not yet converted or checked. Raises
    ConfigError only for a file that cannot be read."""
    source = Sources(root)
    if file is not None:
        source.values, source.origins, source.problems = read_yaml(file)
    for text in sets:
        source.set(text)
    for key, value in flags.items():
        if value is not None:
            source.flag(key, value)
    return source


class Sources:
    """The values so far, and where each comes from; ``root`` is the class that they are settings of."""

    def __init__(self, root: type[Any] = RunConfig) -> None:
        self._root = root
        self.values: dict[str, Any] = {}
        self.origins: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []

    def set(self, text: str) -> None:
        """One ``--set``."""
        key, equals, raw = text.partition("=")
        path = _split_key(key.strip())
        if not equals or not all(path):
            self._problem(path, f"--set {text}: must be KEY=VALUE, such as train.lr=1e-6")
            return
        try:
            value = yaml.safe_load(raw)
        except (yaml.YAMLError, ValueError, RecursionError):
            self._problem(path, f"--set {key.strip()}: {raw!r} is no valid YAML; quotes may help")
            return
        if _type_at(self._root, path) is str and not isinstance(value, str):
            value = raw.strip()  # such as an output called 2024-01-31
        self.put(path, value, f"--set {key.strip()}")

    def flag(self, key: str, value: Any) -> None:
        """One named flag."""
        origin = f"--{FLAGS.get(key, key)}"
        if key == "rewards":
            self._choose_rewards(value, origin)
        else:
            self.put(_split_key(key), value, origin)

    def put(self, path: KeyPath, value: Any, origin: str) -> None:
        """Sets the value at a path, whatever short form its parents have."""
        place = self.values
        for number, parent in enumerate(path[:-1], start=1):
            inner = _written_out(place.get(parent), _type_at(self._root, path[:number]))
            if not isinstance(inner, dict):
                self._problem(path, f"{origin}: {'.'.join(path[:number])} is {inner!r}, which has no settings of its own")
                return
            place[parent] = inner
            place = inner
        before = _written_out(place.get(path[-1]), _type_at(self._root, path))
        if (
            _type_at(self._root, path) is PluginChoice
            and isinstance(value, str)
            and isinstance(before, dict)
            and before.get("name", value) == value
        ):
            place[path[-1]] = before | {"name": value}  # the same plugin keeps its options
        else:
            place[path[-1]] = value
            self.origins = {known: where for known, where in self.origins.items() if known[: len(path)] != path}
        self.origins[path] = origin

    def _choose_rewards(self, names: str, origin: str) -> None:
        """The rewards that the flag names, in its order; those already described keep their weights and options."""
        known = _written_out(self.values.get("rewards"), Mapping)
        described = known if isinstance(known, dict) else {}
        chosen = [name.strip() for name in names.split(",") if name.strip()]
        for name in {name for name in chosen if chosen.count(name) > 1}:
            self._problem(("rewards", name), f"{origin}: names {name!r} twice")
        self.values["rewards"] = {name: described.get(name) for name in chosen}
        self.origins |= {("rewards",): origin} | {("rewards", name): origin for name in chosen}

    def take_presets(self) -> None:
        """Puts the defaults that the chosen algorithm brings for other settings under the values."""
        chosen = _written_out(self.values.get("algorithm"), PluginChoice)
        name = chosen.get("name") if isinstance(chosen, dict) else None
        if not isinstance(name, str) or not name:
            return
        from evr1_core.registry.loading import load_class, resolve

        origin = next((self.origins[path] for path in (("algorithm", "name"), ("algorithm",)) if path in self.origins), "algorithm")
        try:
            presets = load_class(resolve("algorithms", name)).presets
        except Evr1Error as error:
            self._problem(("algorithm",), f"{origin}: {error}")
            return
        under = Sources(self._root)
        for key, value in presets.items():
            under.put(_split_key(key), value, f"preset of {name}")
        self.origins |= {path: where for path, where in under.origins.items() if not _holds(self.values, path)}
        self.values = merged(under.values, self.values)

    def _problem(self, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(path, text))


def _split_key(key: str) -> KeyPath:
    """The parts of a dotted key; the dots of ``rewards.path/to/file.py:Class.weight`` before ``py:`` are none."""
    return tuple(re.split(r"\.(?!py:)", key))


def _type_at(root: Any, path: KeyPath) -> Any:
    """The declared type of a setting; None where there is none of that name."""
    wanted: Any = root
    for part in path:
        if attrs.has(wanted):
            wanted = get_type_hints(wanted).get(part)
        elif _is_mapping(wanted):
            wanted = get_args(wanted)[1]
        else:
            return None
    return wanted


def _is_mapping(wanted: Any) -> bool:
    return get_origin(wanted) is not None and isinstance(get_origin(wanted), type) and issubclass(get_origin(wanted), Mapping)


def _written_out(value: Any, wanted: Any) -> Any:
    """A copy of a value that has settings of its own, its short form (a name, a list of names) as a mapping."""
    if value is None:
        return {}
    if wanted is PluginChoice and isinstance(value, str):
        return {"name": value}
    if wanted is Mapping or _is_mapping(wanted):
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return dict.fromkeys(names)
    return dict(value) if isinstance(value, dict) else value


def _holds(values: Any, path: KeyPath) -> bool:
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """The values of both; where both have one, that of ``high``, mappings within mappings likewise."""
    out = dict(low)
    for key, value in high.items():
        under = out.get(key)
        if isinstance(under, dict) and (isinstance(value, Mapping) or value is None):
            out[key] = merged(under, value or {})
        else:
            out[key] = value
    return out


def resolved(config: Any) -> dict[str, Any]:
    """All settings as plain data that YAML and JSON can hold."""
    result: dict[str, Any] = _as_data(config)
    return result


def _as_data(value: Any) -> Any:
    if attrs.has(type(value)):
        return {field.name: _as_data(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _as_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_data(each) for each in value]
    return value
