"""``evr1 run``: one training run."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from attrs import evolve

DEFAULT_CONFIG = Path("run.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--config", type=Path, help="YAML file of settings (default: ./run.yaml, where there is one)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as train.lr=1e-6; repeatable"
    )
    parser.add_argument("--algo", help="algorithm")
    parser.add_argument("--rewards", help="reward plugins, comma-separated")
    parser.add_argument("--model", help="folder of the checkpoint to train")
    parser.add_argument("--train", help="training files, comma-separated")
    parser.add_argument("--val", help="validation files, comma-separated")
    parser.add_argument("--output", help="run folder")
    parser.add_argument("--dry-run", action="store_true", help="check everything, print the settings and plugin versions, and stop")
    parser.add_argument("--no-files", action="store_true", help="with --dry-run: do not ask whether model and data exist here")


def run(args: argparse.Namespace) -> int:
    """Checks the settings, then trains."""
    from evr1_core.config.checks import check
    from evr1_core.config.sources import load_config

    file = args.config or (DEFAULT_CONFIG if DEFAULT_CONFIG.is_file() else None)
    flags = {
        "algorithm": args.algo,
        "rewards": _named(args.rewards, file),
        "model.path": args.model,
        "data.train": args.train,
        "data.val": args.val,
        "output": args.output,
    }
    config = load_config(file, args.set, flags)
    check(config, files=not args.no_files)
    if not config.output:
        config = evolve(config, output=f"runs/{Path(config.algorithm.name).name}-{datetime.now():%Y%m%d-%H%M%S}")
    if args.dry_run:
        return _show(config)
    from evr1_core.train.run import run as train

    train(config)
    return 0


def _named(rewards: str | None, file: Path | None) -> dict[str, object] | None:
    """The rewards that a flag names; those that the file describes keep their weights and options."""
    if rewards is None:
        return None
    from evr1_core.config.sources import read_yaml

    described = read_yaml(file)[0].get("rewards") if file else None
    known = described if isinstance(described, dict) else {}
    return {name.strip(): known.get(name.strip()) or {} for name in rewards.split(",") if name.strip()}


def _show(config: object) -> int:
    from evr1_core.config.manifest import as_yaml, manifest

    print(as_yaml(config), end="")  # type: ignore[arg-type]
    found = manifest(config)  # type: ignore[arg-type]
    for plugin in found["plugins"]:
        print(f"# {plugin['group']}/{plugin['name']}: {plugin['distribution'] or 'a file'} {plugin['version']}".rstrip())
    print("# " + ", ".join(f"{name} {version}" for name, version in found["packages"].items()))
    return 0
