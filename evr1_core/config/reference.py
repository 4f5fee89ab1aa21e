"""The reference of all settings, made from their classes: as a table, as a page, as a file to start from."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import yaml

from evr1_core.config.schema import PluginChoice, RewardChoice, RunConfig
from evr1_core.config.sources import resolved

_INTRO = """\
# Settings

*Made by `evr1 config --markdown`; edit `evr1_core/config/schema.py` instead.*

A run is decided by its settings. Each comes from the last of these places that names it:

1. the defaults below;
2. the presets that the chosen algorithm brings for other settings;
3. a YAML file: `--config FILE`, or `./run.yaml` where there is one;
4. `--set KEY=VALUE`, as often as needed, with the value as YAML: `--set train.lr=1e-6 --set train.betas=[0.9,0.99]`;
5. the flags of their own: `--algo`, `--rewards`, `--model`, `--train`, `--val`, `--output`.

`evr1 run --dry-run` checks everything but the records and prints the settings that a run would have, which are also `config.yaml`
in its folder, and the versions of the plugins and packages behind them (`manifest.json`). With `--no-files` it does not ask
whether the model, the data and their folders exist on this machine. `evr1 config` lists the settings, `evr1 config --yaml` writes
a file with all defaults to start from, and `evr1 plugins GROUP/NAME` lists the options of a plugin.

All problems are reported at once, each with its place, and the exit status is 2:

```text
run.yaml:14: unknown key rollout.temprature; did you mean rollout.temperature?
--rewards: no reward 'temporal_iuo'; did you mean 'temporal_iou'? (installed: boolean, mcq, ...)
--set train.lr: must be above 0; is -1.0
```

Values are taken as they are written: `true` is no number, `"yes"` is no truth value, and text counts as a number only if it reads
as one (YAML 1.1 takes `1e-6` for text). A list of texts may also be one text with commas. `null` stands for "none" where the type
says so.

**Plugins** are named by `name`, `distribution/name`, or `path/to/file.py:Class`. One without options may be given by its name
alone:

```yaml
algorithm: grpo                        # the same as {name: grpo}
rewards:
  mcq:                                 # all defaults
  temporal_iou: {clock: false}         # options; the same as {options: {clock: false}}
  open_ended: {weight: 0.5}            # weight, default options
log:
  trackers: [console, {name: jsonl}]
```

`rewards: [mcq, temporal_iou]` takes the defaults of both. `--rewards a,b` chooses rewards; those that the file describes keep
their weights and options.
"""


@attrs.frozen(kw_only=True)
class Entry:
    """One setting. ``default`` is YAML in one line."""

    key: str
    kind: str
    default: str
    help: str


@attrs.frozen(kw_only=True)
class Section:
    """The settings below one key; those of the run itself have the name ""."""

    name: str
    help: str
    entries: tuple[Entry, ...]


def sections() -> list[Section]:
    """All settings, in the order of their classes."""
    return list(_sections(RunConfig, "", "What is run, and where to."))


def as_table(prefix: str = "") -> str:
    """The settings whose keys are ``prefix`` or below it, one in two lines."""
    entries = [entry for section in sections() for entry in section.entries]
    wanted = [entry for entry in entries if not prefix or entry.key == prefix or entry.key.startswith(f"{prefix}.")]
    return "".join(f"{entry.key}: {entry.kind}, default {entry.default}\n    {entry.help}\n" for entry in wanted)


def as_markdown() -> str:
    """The text of ``docs/config.md``."""
    parts = [_INTRO]
    for section in sections():
        lines = [f"## {section.name or 'Run'}", "", section.help, "", "| setting | type | default | meaning |", "|---|---|---|---|"]
        for entry in section.entries:
            cells = (f"`{entry.key}`", entry.kind, f"`{entry.default}`", entry.help)
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Text for a Markdown table: tags outside backquotes would be taken for HTML."""
    parts = text.replace("|", r"\|").split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def as_yaml() -> str:
    """All defaults as a YAML file, each with its help."""
    helps = {entry.key: entry.help for section in sections() for entry in section.entries}
    helps |= {section.name: section.help for section in sections()}
    return "".join(_commented(resolved(RunConfig()), "", helps))


def _commented(values: Mapping[str, Any], prefix: str, helps: Mapping[str, str]) -> Iterator[str]:
    indent = "  " * (prefix.count(".") + bool(prefix))
    for name, value in values.items():
        key = f"{prefix}.{name}" if prefix else name
        nested = isinstance(value, dict) and any(other.startswith(f"{key}.") and "NAME" not in other for other in helps)
        if key in helps:
            yield f"{indent}# {helps[key]}\n"
        if nested:
            yield f"{indent}{name}:\n"
            yield from _commented(value, key, helps)
        else:
            yield f"{indent}{name}: {_flow(value)}\n"


def _sections(cls: type[Any], key: str, help_text: str) -> Iterator[Section]:
    hints = get_type_hints(cls)
    entries: list[Entry] = []
    inner: list[tuple[type[Any], str, str]] = []
    for field in attrs.fields(cls):
        here, kind, text = f"{key}.{field.name}".lstrip("."), hints[field.name], str(field.metadata["help"])
        if attrs.has(kind) and kind is not PluginChoice:
            inner.append((kind, here, text))
            continue
        entries.append(Entry(key=here, kind=_words(kind), default=_flow(resolved(_Holder(_default(field)))["value"]), help=text))
        if get_origin(kind) is not None and RewardChoice in get_args(kind):
            entries += [
                attrs.evolve(entry, key=f"{here}.NAME.{entry.key}") for entry in next(_sections(RewardChoice, "", "")).entries
            ]
    yield Section(name=key, help=_about(cls, help_text), entries=tuple(entries))
    for kind, here, text in inner:
        yield from _sections(kind, here, text)


@attrs.frozen
class _Holder:
    value: Any


def _about(cls: type[Any], help_text: str) -> str:
    """The class's own docstring, where it has one, or the help of the setting that holds it."""
    written = vars(cls).get("__doc__") or ""
    if written and not written.startswith("Method generated") and cls is not RunConfig:
        return " ".join(inspect.cleandoc(written).split())
    return f"{help_text[0].upper()}{help_text[1:].rstrip('.')}." if help_text else ""


def _default(field: Any) -> Any:
    return field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]


def _flow(value: Any) -> str:
    """A value as YAML in one line."""
    text = yaml.safe_dump(_short(value), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _short(value: Any) -> Any:
    """Plugins without options as their names."""
    if isinstance(value, dict) and set(value) == {"name", "options"} and not value["options"]:
        return value["name"]
    return [_short(each) for each in value] if isinstance(value, list) else value


_WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", PluginChoice: "plugin", type(None): "null"}


def _words(kind: Any) -> str:
    """A type in words."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(argument) for argument in arguments)
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    if origin is tuple:
        each = _words(arguments[0])
        return f"list of {each}s" if arguments[1:] == (Ellipsis,) else f"{len(arguments)} {each}s"
    if origin is not None and issubclass(origin, Mapping):
        return "mapping by name" if RewardChoice in arguments else "mapping"
    return _WORDS[kind]
