"""``evr1 data check``: what data files hold, and what is wrong with them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evr1_core.api.errors import DataError

if TYPE_CHECKING:
    from evr1_core.api.samples import Sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="read files as a run would; count records, or list all that is wrong")
    check.add_argument("files", nargs="+", metavar="FILE", help=".json, .jsonl or .parquet")
    check.add_argument(
        "--config", type=Path, metavar="FILE", help="take `data.keys` and `data.media_root` from a run's configuration"
    )
    check.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as data.media_root=/films")


def run(args: argparse.Namespace) -> int:
    """0 when a run could read all files; otherwise all problems and 2."""
    from evr1_core.config.sources import load_config
    from evr1_core.data.records import read_samples

    config = load_config(args.config, args.set, {})
    try:
        samples = read_samples(args.files, config.data)
    except DataError as error:
        count = len(error.problems)
        raise DataError([*error.problems, f"{count} problem{'s' if count > 1 else ''}: a run would read none of it"]) from error
    print("\n".join(summary(samples)))
    return 0


def summary(samples: Sequence[Sample]) -> list[str]:
    """Lines that say how many records there are, of what, and with what."""
    media = Counter(_media(sample) for sample in samples)
    offline = sum(sample.offline is not None for sample in samples)
    files = {medium.path for sample in samples for medium in sample.media}
    return [
        f"{len(samples)} records, {len(files)} media files, {offline} stored trajectories",
        *_counts("problem type", (sample.task for sample in samples)),
        *_counts("media", media.elements()),
        *_counts("source", (sample.source or "(none)" for sample in samples)),
    ]


def _media(sample: Sample) -> str:
    """``text``, or how many of which kind: ``1 video``, ``2 images + 1 video``."""
    counts = Counter(medium.kind for medium in sample.media)
    parts = [f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in ("image", "video") if counts[kind]]
    return " + ".join(parts) or "text"


def _counts(title: str, values: Iterable[str]) -> list[str]:
    counts = Counter(values)
    width = max(len(value) for value in counts)
    return [f"by {title}:", *(f"  {value:{width}}  {count}" for value, count in counts.most_common())]
