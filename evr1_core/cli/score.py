"""``evr1 score``: stored responses through the rewards, without training."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evr1_core.api.errors import DataError, PluginError

if TYPE_CHECKING:
    from evr1_core.api.rewards import Reward
    from evr1_core.config.schema import RunConfig
    from evr1_core.rollout.rows import Row
    from evr1_core.rollout.scoring import Scorer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, the rewards, and what to do with the results."""
    parser.add_argument(
        "file", type=Path, metavar="FILE.jsonl", help="rows with response, ground_truth, problem_type, options, ..."
    )
    parser.add_argument(
        "--rewards", default="", metavar="A,B", help="reward plugins; default: all installed that serve a type in the file"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write one JSON object a row: every component and why")
    parser.add_argument(
        "--expect", action="store_true", help="compare with `expected` and `tolerance` of the rows; exit status 1 if one differs"
    )
    parser.add_argument("--opens-thinking", action="store_true", help="the chat template opened the reasoning before the response")
    parser.add_argument("--config", type=Path, metavar="FILE", help="take rewards and their composition from a run's configuration")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as reward.format_weight=0")


def run(args: argparse.Namespace) -> int:
    """0; 1 when `--expect` finds a difference."""
    from evr1_core.config.sources import load_config
    from evr1_core.rollout.results import as_json, differences, score_rows, table
    from evr1_core.rollout.rows import read_rows

    rows = read_rows(args.file)
    if args.expect and not any(row.expects for row in rows):
        raise DataError([f"{args.file}: no row has `expected`, so there is nothing to compare"])
    if args.out:
        _check_out(args.out, args.file)
    config = load_config(args.config, args.set, {})
    scorer = _scorer(config, args, rows)
    try:
        results = score_rows(rows, scorer)
    finally:
        for reward in scorer.rewards.values():
            reward.close()
    print("\n".join(table(results)))
    if args.out:
        write_rows(args.out, (as_json(result) for result in results))
    if not args.expect:
        return 0
    different = differences(results)
    expecting = sum(row.expects for row in rows)
    print("\n".join([*different, f"{expecting - len(different)} of {expecting} rows as expected"]))
    return 1 if different else 0


def _scorer(config: RunConfig, args: argparse.Namespace, rows: Sequence[Row]) -> Scorer:
    from evr1_core.rollout.scoring import Scorer

    names = [name.strip() for name in args.rewards.split(",") if name.strip()] or (list(config.rewards) if args.config else [])
    rewards, distributions = _chosen(names, config) if names else _serving(rows, config)
    return Scorer(
        rewards,
        config.rewards,
        config.reward,
        opens_thinking=args.opens_thinking,
        max_tokens=config.rollout.max_response_tokens,
        distributions=distributions,
    )


def _chosen(names: Sequence[str], config: RunConfig) -> tuple[dict[str, Reward], dict[str, str]]:
    from evr1_core.registry.loading import resolve

    return {name: _built(name, config, place="--rewards") for name in names}, {
        name: resolve("rewards", name).origin for name in names
    }


def _serving(rows: Sequence[Row], config: RunConfig) -> tuple[dict[str, Reward], dict[str, str]]:
    """All installed rewards that serve a problem type of the file, and the fallback; one that cannot be loaded is named and left
    out.
    """
    from evr1_core.registry.catalog import Catalog
    from evr1_core.registry.loading import load_class

    wanted = {task for row in rows for task in (row.kind, row.subtask)}
    rewards, distributions = {}, {}
    for ref in Catalog.scan().group("rewards"):
        name = ref.name if ref.name not in rewards else f"{ref.dist}/{ref.name}"
        try:
            serves = name == config.reward.fallback or bool(load_class(ref).tasks & wanted)
        except PluginError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if serves:
            rewards[name], distributions[name] = _built(f"{ref.dist}/{ref.name}", config, name), ref.origin
    return rewards, distributions


def _built(name: str, config: RunConfig, key: str = "", place: str = "") -> Reward:
    from evr1_core.config.schema import RewardChoice
    from evr1_core.registry.loading import build_plugin

    options = config.rewards.get(key or name, RewardChoice()).options
    place = f"rewards.{key or name}" if options or not place else place
    reward: Reward = build_plugin("rewards", name, options, place=place)
    return reward


def _check_out(path: Path, source: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise DataError([f"--out: {path} is a folder, or its folder does not exist"])
    if path.exists() and path.samefile(source):
        raise DataError([f"--out: {path} is the file that is read"])


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file at once: a reader sees the old file or the whole new one. Raises DataError."""
    from evr1_core.data.whole import replacing

    try:
        with replacing(path) as partial, partial.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        raise DataError([f"--out: {path} cannot be written: {error.strerror}"]) from error
