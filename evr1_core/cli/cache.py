"""``evr1 cache``: decode the media of data files ahead of a run, and ask what a file will become."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    building = actions.add_parser("build", help="decode what data files name")
    building.add_argument("data", nargs="+", help="data files")
    building.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    planning = actions.add_parser("plan", help="frames, size and tokens of media files")
    planning.add_argument("files", nargs="+", help="videos or images")
    for action in (building, planning):
        action.add_argument("--config", type=Path, help="YAML file of settings")
        action.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; repeatable")
        action.add_argument("--grid", help="PATCH,MERGE,TEMPORAL, in place of those of model.path")


def run(args: argparse.Namespace) -> int:
    """Does the action."""
    from evr1_core.config.sources import load_config

    config = load_config(args.config, args.set, {})
    return _build(args, config) if args.action == "build" else _plan(args, config)


def _build(args: argparse.Namespace, config: Any) -> int:
    from rich.progress import track

    from evr1_core.api import DataError
    from evr1_core.cache.build import Job, build
    from evr1_core.data.records import read_samples

    samples = read_samples(args.data, config.data)
    media = list(dict.fromkeys(media for sample in samples for media in sample.media))
    folder, grid = _folder(config), _grid(args, config)
    jobs = [
        Job(media=each, cache=config.cache, frames=config.frames, grid=grid, media_root=Path(config.data.media_root), folder=folder)
        for each in media
    ]
    results = list(track(build(jobs, args.workers), total=len(jobs), description="decoding"))
    failures = [error for error in results if error is not None]
    print(f"{len(jobs) - len(failures)} of {len(jobs)} media files are in {folder}")
    if failures:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(error.kind for error in failures).most_common())
        raise DataError([*(str(error) for error in failures), f"{len(failures)} files cannot be used: {kinds}"])
    return 0


def _plan(args: argparse.Namespace, config: Any) -> int:
    from evr1_core.api import Media
    from evr1_core.cache.frames import FrameCache

    cache = FrameCache(config.cache, config.frames, _grid(args, config), media_root=Path(), folder=_folder(config))
    for file in args.files:
        plan = cache.plan(Media(kind="image" if Path(file).suffix.lower() in IMAGES else "video", path=file))
        print(f"{file}: {plan.num_frames} frames of {plan.width} x {plan.height}, {plan.num_tokens} tokens")
    return 0


IMAGES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def _folder(config: Any) -> Path:
    return Path(config.cache.folder or Path(config.output or "runs/run").parent / "cache")


def _grid(args: argparse.Namespace, config: Any) -> Any:
    from evr1_core.api import ConfigError, PatchGrid
    from evr1_core.train.session import find_family

    if not args.grid:
        if not config.model.path and not config.model.family.name:
            raise ConfigError(["model.path: must be given, or --grid PATCH,MERGE,TEMPORAL: sizes depend on the model family"])
        return find_family(config).grid
    try:
        patch, merge, temporal = (int(part) for part in args.grid.split(","))
    except ValueError as error:
        raise ConfigError([f"--grid: must be three whole numbers such as 16,2,2; is {args.grid!r}"]) from error
    return PatchGrid(patch=patch, merge=merge, temporal=temporal)
