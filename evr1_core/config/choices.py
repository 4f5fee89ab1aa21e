"""The plugins that settings name, and whether each can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from evr1_core.api import Algorithm
from evr1_core.api.errors import Evr1Error, ProblemsError
from evr1_core.config.build import dotted_key, located
from evr1_core.config.convert import Path, index
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import Loaded
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.loading import build_plugin, load_class, resolve

NAMED_ONLY = ("engines", "models")  # importing these loads torch


@frozen(kw_only=True)
class Choice:
    """A plugin of a run, and the path of the setting that asks for it."""

    path: Path
    group: str
    name: str
    options: Mapping[str, Any]


def chosen(config: RunConfig) -> Iterator[Choice]:
    """All plugins that the settings name."""
    named = [
        (("algorithm",), "algorithms", config.algorithm),
        (("rollout", "engine"), "engines", config.rollout.engine),
        (("model", "family"), "models", config.model.family),
        *((("log", "trackers", index(number)), "trackers", tracker) for number, tracker in enumerate(config.log.trackers)),
    ]
    for path, group, plugin in named:
        if plugin.name:
            yield Choice(path=path, group=group, name=plugin.name, options=plugin.options)
    for name, reward in config.rewards.items():
        yield Choice(path=("rewards", name), group="rewards", name=name, options=reward.options)


@frozen
class Built:
    """What building the plugins showed. ``algorithm``: its class, whatever its options; ``instance``: built with them."""

    problems: Sequence[str]
    algorithm: type[Algorithm] | None
    instance: Algorithm | None = None


def built(loaded: Loaded, broken: Sequence[Path]) -> Built:
    """Builds each plugin once, to see that it can be; of engines and model families the names are looked up alone.

    ``broken``: settings with problems, which are left out.
    """
    catalog = Catalog.scan()
    problems: list[str] = []
    algorithm: type[Algorithm] | None = None
    instance: Algorithm | None = None
    for choice in chosen(loaded.config):
        if any(touches(choice.path, path) for path in broken):
            continue
        try:
            ref = resolve(choice.group, choice.name, catalog)
            if choice.group == "algorithms":
                algorithm = load_class(ref)
            if choice.group not in NAMED_ONLY:
                plugin = _try(choice, catalog, loaded.origins)
                instance = plugin if isinstance(plugin, Algorithm) else instance
            elif ref.problem:
                problems.append(located(choice.path, f"{ref} cannot be loaded: {ref.problem}", loaded.origins))
        except ProblemsError as error:
            problems += error.problems
        except Evr1Error as error:
            problems.append(located(choice.path, str(error).removeprefix(f"{_place(choice)}: "), loaded.origins))
    return Built(problems, algorithm, instance)


def touches(path: Path, other: Path) -> bool:
    """One of the paths is the other or lies below it."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


def _try(choice: Choice, catalog: Catalog, origins: Mapping[Path, str]) -> object:
    plugin = build_plugin(
        choice.group, choice.name, choice.options, place=_place(choice), catalog=catalog, origins=_below(choice, origins)
    )
    if choice.group == "rewards":
        plugin.close()  # it may have started processes
    return plugin


def _place(choice: Choice) -> str:
    """What stands before an option in messages. A reward's options may stand without the word `options`."""
    return dotted_key(choice.path if choice.group == "rewards" else (*choice.path, "options"))


def _below(choice: Choice, origins: Mapping[Path, str]) -> dict[Path, str]:
    """Where the options of a plugin come from, by their paths below it."""
    length = len(choice.path)
    below = {known[length:]: where for known, where in origins.items() if known[:length] == choice.path}
    spelt_out = {known[1:]: where for known, where in below.items() if known[:1] == ("options",) and known[1:]}
    loose = {known: where for known, where in below.items() if known == () or choice.group == "rewards"}
    return loose | spelt_out
