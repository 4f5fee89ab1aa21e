"""YAML files with the line of every key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from evr1_core.api.errors import ConfigError
from evr1_core.config.build import Problem
from evr1_core.config.convert import Path as KeyPath
from evr1_core.config.convert import index


def read_yaml(file: Path) -> tuple[dict[str, Any], dict[KeyPath, str], list[Problem]]:
    """The mapping in a YAML file, ``file:line`` of every key in it, and the keys given twice.

    Raises ConfigError for a file that holds no mapping.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError([f"{file}: cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{file}: is not UTF-8 text (byte {error.start})"]) from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = {} if node is None else yaml.safe_load(text)
    except yaml.reader.ReaderError as error:
        number = text.count("\n", 0, error.position) + 1
        raise ConfigError([f"{file}:{number}: no valid YAML: a control character (code {error.character})"]) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError([f"{file}{line}: no valid YAML: {getattr(error, 'problem', None) or error}"]) from error
    except (ValueError, RecursionError) as error:  # such as the date 2024-13-45, or thousands of brackets
        raise ConfigError([f"{file}: no valid YAML: {error}"]) from error
    if not isinstance(values, dict):
        raise ConfigError([f"{file}: must hold a mapping of settings, such as `train: {{lr: 1e-6}}`"])
    notes = _Notes(file)
    if node is not None:
        notes.take(node, ())
    return values, notes.origins, notes.problems


MERGE = "tag:yaml.org,2002:merge"


def _key(node: yaml.Node) -> Any:
    """A key as the values have it: `on` is True."""
    return yaml.SafeLoader("").construct_object(node, deep=True)


class _Notes:
    """Walks the nodes of a document once and writes down where each key stands."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open: list[yaml.Node] = []  # an anchor may hold itself
        self.origins: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []

    def take(self, node: yaml.Node, path: KeyPath) -> None:
        if any(node is other for other in self._open):
            return
        self._open.append(node)
        if isinstance(node, yaml.SequenceNode):
            for number, each in enumerate(node.value):
                self._note(each, (*path, index(number)), each)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.tag == MERGE:
                    continue
                here = (*path, str(_key(key)))
                if here[-1] in seen:
                    place = f"{self._file}:{key.start_mark.line + 1}"
                    self.problems.append(Problem(here, f"{place}: key {'.'.join(here)} is given twice"))
                seen.add(here[-1])
                self._note(key, here, value)
        self._open.pop()

    def _note(self, key: yaml.Node, here: KeyPath, value: yaml.Node) -> None:
        self.origins[here] = f"{self._file}:{key.start_mark.line + 1}"
        self.take(value, here)
