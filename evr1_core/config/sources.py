"""Where settings come from: defaults, the algorithm's presets, a YAML file, ``--set``, named flags; the later one wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from evr1_core.api.errors import ConfigError, Evr1Error
from evr1_core.config.build import Path as KeyPath
from evr1_core.config.build import build
from evr1_core.config.schema import RunConfig


def load_config(file: Path | None, sets: Sequence[str], flags: Mapping[str, Any]) -> RunConfig:
    """The settings of a run.

    ``sets``: ``a.b=value`` with the value as YAML. ``flags``: dotted key to value; None leaves a setting alone; messages name them
    ``--KEY``. Raises ConfigError with all problems, each with its place.
    """
    problems: list[str] = []
    values: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    if file is not None:
        values, origins = read_yaml(file)
    for text in sets:
        key, equals, raw = text.partition("=")
        if not equals or not key.strip():
            problems.append(f"--set {text}: must be KEY=VALUE, such as train.lr=1e-6")
            continue
        try:
            value = yaml.safe_load(raw)
        except yaml.YAMLError:
            problems.append(f"--set {text}: the value is no valid YAML")
            continue
        problems += _put(values, origins, key.strip(), value, f"--set {key.strip()}")
    for key, value in flags.items():
        if value is not None:
            problems += _put(values, origins, key, value, f"--{FLAGS.get(key, key)}")
    values = _with_presets(values, problems)
    if problems:
        raise ConfigError(problems)
    config: RunConfig = build(RunConfig, values, origins=origins)
    return config


FLAGS = {"algorithm": "algo", "rewards": "rewards", "model.path": "model", "data.train": "train", "data.val": "val"}


def read_yaml(file: Path) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The mapping in a YAML file, and ``file:line`` of every key in it. Raises ConfigError."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file}: cannot be read ({error})"]) from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError([f"{file}{line}: no valid YAML: {getattr(error, 'problem', error)}"]) from error
    if node is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError([f"{file}: must hold a mapping of settings"])
    origins: dict[KeyPath, str] = {}
    problems: list[str] = []
    _note_lines(node, (), file, origins, problems)
    if problems:
        raise ConfigError(problems)
    return yaml.safe_load(text), origins


def _note_lines(node: yaml.Node, path: KeyPath, file: Path, origins: dict[KeyPath, str], problems: list[str]) -> None:
    """Writes down where each key stands; a key given twice in one mapping is a problem."""
    if isinstance(node, yaml.SequenceNode):
        for number, each in enumerate(node.value):
            _note_lines(each, (*path, str(number)), file, origins, problems)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        place = f"{file}:{key.start_mark.line + 1}"
        if key.value in seen:
            problems.append(f"{place}: key {'.'.join((*path, str(key.value)))} is given twice")
        seen.add(key.value)
        origins[(*path, str(key.value))] = place
        _note_lines(value, (*path, str(key.value)), file, origins, problems)


def _put(values: dict[str, Any], origins: dict[KeyPath, str], key: str, value: Any, origin: str) -> list[str]:
    """Sets a dotted key. Returns problems."""
    *parents, last = key.split(".")
    place = values
    for number, parent in enumerate(parents):
        inner = place.setdefault(parent, {})
        if isinstance(inner, str) and parents[number] in {"algorithm", "engine", "family"}:
            inner = place[parent] = {"name": inner}  # a plugin by its name alone, which now gets options
        if not isinstance(inner, dict):
            return [f"{origin}: {'.'.join(parents[: number + 1])} is {inner!r}, which has no settings of its own"]
        place = inner
    if isinstance(value, str) and isinstance(place.get(last), dict) and "name" in place[last]:
        value = place[last] | {"name": value} if place[last]["name"] == value else {"name": value}
    place[last] = value
    origins[tuple(key.split("."))] = origin
    return []


def _with_presets(values: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    """The values over the defaults that the chosen algorithm brings for other settings."""
    chosen = values.get("algorithm")
    name = chosen.get("name") if isinstance(chosen, Mapping) else chosen
    if not isinstance(name, str) or not name:
        return values
    from evr1_core.registry.loading import load_class, resolve

    try:
        presets = load_class(resolve("algorithms", name)).presets
    except Evr1Error as error:
        problems.append(f"algorithm: {error}")
        return values
    merged: dict[str, Any] = {}
    for key, value in presets.items():
        _put(merged, {}, key, value, "presets")
    return _merge(merged, values)


def _merge(low: dict[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(low)
    for key, value in high.items():
        both = isinstance(out.get(key), dict) and isinstance(value, Mapping)
        out[key] = _merge(out[key], value) if both else value
    return out


def resolved(config: Any) -> dict[str, Any]:
    """All settings as plain data that YAML and JSON can hold."""

    def plain(value: Any) -> Any:
        if attrs.has(type(value)):
            return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
        if isinstance(value, Mapping):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(each) for each in value]
        return value

    result: dict[str, Any] = plain(config)
    return result
