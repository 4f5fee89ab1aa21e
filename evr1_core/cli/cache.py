"""``evr1 cache``: decode the media of data files ahead of a run, ask what a file will become, look after the folder."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from evr1_core.cli._progress import tracked

if TYPE_CHECKING:
    from evr1_core.api import PatchGrid, VideoMetadata
    from evr1_core.config.schema import RunConfig

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    building = actions.add_parser("build", help="decode what data files name; what is stored already is not decoded again")
    building.add_argument("data", nargs="+", metavar="DATA", help="data files: .json, .jsonl or .parquet")
    building.add_argument("--workers", type=_count, default=os.cpu_count() or 1, help="processes (default: one a core)")
    planning = actions.add_parser("plan", help="frames, size and tokens of media files")
    planning.add_argument("files", nargs="+", metavar="FILE", help="videos or images")
    actions.add_parser("ls", help="list the entries, the most recently used first")
    verifying = actions.add_parser("verify", help="read every entry and compare it with its checksum")
    verifying.add_argument("--remove", action="store_true", help="remove damaged entries; they are decoded anew when needed")
    cleaning = actions.add_parser("gc", help="make room: remove the least recently used entries that nobody uses")
    cleaning.add_argument("--max-size", required=True, type=_size, metavar="SIZE", help="what may stay, such as 500G")
    for name, action in actions.choices.items():
        action.add_argument("--config", type=Path, metavar="FILE", help="YAML file of settings")
        action.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one setting; repeatable")
        if name in ("build", "plan"):
            action.add_argument("--grid", metavar="PATCH,MERGE,TEMPORAL", help="such as 16,2,2, in place of the model family's")
        else:
            action.add_argument("--folder", type=Path, help="the cache, in place of cache.folder")


def run(args: argparse.Namespace) -> int:
    """0; 1 when entries are damaged or files cannot be used."""
    from evr1_core.config.sources import load_config

    config = load_config(args.config, args.set, {})
    actions = {"build": _build, "plan": _plan, "ls": _list, "verify": _verify, "gc": _clean}
    return actions[args.action](args, config)


def _build(args: argparse.Namespace, config: RunConfig) -> int:
    from evr1_core.api import DataError
    from evr1_core.cache.build import build
    from evr1_core.cache.child import Decoders
    from evr1_core.cache.frames import FrameCache
    from evr1_core.data.records import read_samples

    samples = read_samples(args.data, config.data)
    media = list(dict.fromkeys(media for sample in samples for media in sample.media))
    decoders = Decoders(size=args.workers, time_limit=config.cache.time_limit, memory_mb=config.cache.memory_limit)
    cache = FrameCache(
        config.cache,
        config.frames,
        _grid(args, config),
        media_root=Path(config.data.media_root),
        folder=folder_of(config),
        decoders=decoders,
        threads=0 if args.workers == 1 else 1,  # the processes share the cores
    )
    try:
        results = list(tracked(build(cache, media, args.workers), len(media), doing="decoding", unit="files"))
    finally:
        decoders.close()
    failures = [each.error for each in results if each.error is not None]
    present = sum(each.present for each in results)
    stored = len(results) - present - len(failures)
    for each in results:
        if each.readable < 1:
            print(f"{each.media.path}: only {each.readable:.0%} of the promised frames can be read")
    print(f"{cache.folder}: {stored} files decoded, {present} were there, {len(failures)} cannot be used")
    if failures:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(error.kind for error in failures).most_common())
        raise DataError([*sorted(str(error) for error in failures), f"{len(failures)} files cannot be used: {kinds}"])
    return 0


def _plan(args: argparse.Namespace, config: RunConfig) -> int:
    from evr1_core.api import Media, MediaError
    from evr1_core.cache.frames import FrameCache

    cache = FrameCache(config.cache, config.frames, _grid(args, config), media_root=Path(), folder=folder_of(config))
    failed = False
    for file in args.files:
        try:
            media = Media(kind="image" if Path(file).suffix.lower() in PICTURES else "video", path=file)
            plan, meta = cache.plan(media), cache.outline(media).meta
        except MediaError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        print(f"{file}: {plan.num_frames} frames of {plan.width} x {plan.height}, {plan.num_tokens} tokens")
        if meta is not None:
            print("  " + _described(meta))
    return 2 if failed else 0


def _described(meta: VideoMetadata) -> str:
    size = f"{meta.source_width} x {meta.source_height}"
    text = f"source: {meta.total_frames} frames of {size}, {meta.duration:.3f} s, {meta.fps:.3f} frames/s"
    times = ", ".join(f"{time:.2f}" for time in meta.times)
    lost = "" if meta.readable == 1 else f"\n  only {meta.readable:.0%} of the promised frames can be read"
    return f"{text}{lost}\n  seconds: {times}"


def _list(args: argparse.Namespace, config: RunConfig) -> int:
    from evr1_core.cache.upkeep import listed

    total = count = 0
    for entry in listed(args.folder or folder_of(config)):
        used = f"{datetime.fromtimestamp(entry.used):%Y-%m-%d %H:%M}"
        what = entry.problem or f"{'x'.join(map(str, entry.shape)):>18}  {entry.path}"
        print(f"{entry.key[:12]}  {_bytes(entry.size):>9}  {used}  {what}")
        total, count = total + entry.size, count + 1
    print(f"{count} entries, {_bytes(total)}")
    return 0


def _verify(args: argparse.Namespace, config: RunConfig) -> int:
    from evr1_core.cache.upkeep import verify

    bad = count = 0
    for path, problem in verify(args.folder or folder_of(config)):
        count += 1
        if problem:
            bad += 1
            print(problem)
            if args.remove:
                path.unlink(missing_ok=True)
    print(f"{count} entries, {bad} damaged{' and removed' if bad and args.remove else ''}")
    return 1 if bad and not args.remove else 0


def _clean(args: argparse.Namespace, config: RunConfig) -> int:
    from evr1_core.cache.upkeep import clean

    done = clean(args.folder or folder_of(config), args.max_size)
    print(f"{done.removed} entries removed, {_bytes(done.freed)} freed, {_bytes(done.left)} left")
    if done.left > args.max_size:
        print(f"more than {_bytes(args.max_size)} is left: {done.busy} entries are in use", file=sys.stderr)
    return 0


def folder_of(config: RunConfig) -> Path:
    """The cache that the settings mean."""
    return Path(config.cache.folder or Path(config.output or "runs/run").parent / "cache")


def _grid(args: argparse.Namespace, config: RunConfig) -> PatchGrid:
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
    if min(patch, merge, temporal) < 1:
        raise ConfigError([f"--grid: must be three numbers above 0; is {args.grid!r}"])
    return PatchGrid(patch=patch, merge=merge, temporal=temporal)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more; is {text}")
    return number


def _size(text: str) -> int:
    """Bytes of ``500G``, ``1.5T``, ``0``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a size such as 500G; is {text!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
