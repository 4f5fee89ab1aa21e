"""``evr1 run``: one training run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from evr1_core.api.errors import ConfigError

if TYPE_CHECKING:
    from evr1_core.config.schema import RunConfig

DEFAULT_CONFIG = Path("run.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--algo", metavar="NAME", help="algorithm")
    parser.add_argument("--rewards", metavar="A,B", help="reward plugins; those that the file describes keep their options")
    parser.add_argument("--model", metavar="FOLDER", help="checkpoint to train")
    parser.add_argument("--train", nargs="+", metavar="FILE", help="training files")
    parser.add_argument("--val", nargs="+", metavar="FILE", help="validation files")
    parser.add_argument("--output", metavar="FOLDER", help="run folder")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="YAML file of settings (default: ./run.yaml, where there is one)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as train.lr=1e-6; repeatable"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything but the records, print settings and versions, and stop"
    )
    parser.add_argument("--no-files", action="store_true", help="with --dry-run: do not ask whether model and data exist here")


def run(args: argparse.Namespace) -> int:
    """Checks the settings, then trains."""
    from evr1_core.config.checks import check
    from evr1_core.config.sources import load

    if args.no_files and not args.dry_run:
        raise ConfigError(["--no-files: goes with --dry-run; a run needs its files"])
    flags = {
        "algorithm": args.algo,
        "rewards": args.rewards,
        "model.path": args.model,
        "data.train": _files(args.train),
        "data.val": _files(args.val),
        "output": args.output,
    }
    config = check(load(settings_file(args.config), args.set, flags), files=not args.no_files)
    if args.dry_run:
        return _show(config)
    if not config.output:
        config = evolve(config, output=_folder(config.algorithm.name))
    from evr1_core.train.run import run as train

    train(config)
    return 0


def settings_file(given: Path | None) -> Path | None:
    """The file of settings: the given one, or ``./run.yaml``, where there is one."""
    return given or (DEFAULT_CONFIG if DEFAULT_CONFIG.is_file() else None)


def _files(words: Sequence[str] | None) -> list[str] | None:
    """File names, separated by blanks or commas."""
    return None if words is None else [name for word in words for name in word.split(",") if name]


def _folder(algorithm: str) -> str:
    """A run folder that is not there yet; ``algorithm`` may be `distribution/name` or `path/to/file.py:Class`."""
    name = algorithm.rpartition("/")[2].replace(".py:", "-")
    wanted = f"runs/{name}-{datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while Path(found := wanted if number == 1 else f"{wanted}-{number}").exists():
        number += 1
    return found


def _show(config: RunConfig) -> int:
    from evr1_core.config.manifest import as_yaml, manifest

    print(as_yaml(config), end="")
    found = manifest(config)
    for plugin in found["plugins"]:
        print(f"# {plugin['group']}/{plugin['name']}: {plugin['distribution'] or 'a file'} {plugin['version']}".rstrip())
    print("# " + ", ".join(f"{name} {version}" for name, version in found["packages"].items()))
    return 0
