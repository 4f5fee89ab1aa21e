"""``evr1 filter``: which records a model can learn from, measured by answering each of them several times."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evr1_core.api.errors import DataError
from evr1_core.cli._progress import tracked
from evr1_core.cli.run import settings_file

if TYPE_CHECKING:
    from evr1_core.train.filtering import Limits, Outcome

COLUMNS = ("kept", "too easy", "too hard", "failed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    share = _option(float, lambda p: 0 <= p <= 1, "in [0, 1]")
    parser.add_argument("data", type=Path, metavar="DATA", help="data file: .json, .jsonl or .parquet")
    parser.add_argument("--model", metavar="FOLDER", help="checkpoint that answers")
    parser.add_argument(
        "-k",
        type=_option(int, lambda k: k >= 2, "a whole number from 2 on, since one response is right or wrong"),
        default=8,
        metavar="K",
        help="responses to each record (default: 8)",
    )
    parser.add_argument("--rewards", metavar="A,B", help="reward plugins; those that the file describes keep their options")
    parser.add_argument(
        "--threshold",
        type=_option(float, lambda t: 0 < t <= 1, "above 0 and at most 1"),
        default=0.5,
        metavar="T",
        help="accuracy from which a response passes (default: 0.5)",
    )
    parser.add_argument("--low", type=share, default=0.0, metavar="P", help="keep records with a pass rate above this (default: 0)")
    parser.add_argument("--high", type=share, default=1.0, metavar="P", help="and below this (default: 1)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the kept rows go (default: DATA with .kept in its name)")
    parser.add_argument(
        "--rates", type=Path, metavar="FILE", help="pass rates by record, where a stopped pass goes on (default: DATA.rates.jsonl)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="YAML file of settings (default: ./run.yaml, where there is one)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as rollout.temperature=0.7; repeatable"
    )


def run(args: argparse.Namespace) -> int:
    """Checks everything, samples what has no pass rate yet, writes the kept rows, prints the table."""
    from evr1_core.config.checks import check
    from evr1_core.config.sources import load

    data = args.data
    if not data.is_file():
        raise DataError([f"{data}: there is no such file"])
    out = args.out or data.with_name(f"{data.stem}.kept{data.suffix}")
    rates = args.rates or data.with_name(f"{data.stem}.rates.jsonl")
    if args.low >= args.high:
        raise DataError([f"--low: must be below --high = {args.high:g}; is {args.low:g}"])
    _check_files(data, out, rates)
    config = check(load(settings_file(args.config), args.set, {"model.path": args.model, "rewards": args.rewards}), trains=False)
    from evr1_core.train.filtering import FilterPass, Limits

    limits = Limits(threshold=args.threshold, low=args.low, high=args.high)
    with FilterPass(config, data, rates, k=args.k, limits=limits) as work:
        sampled = sum(1 for _ in tracked(work.sample(), len(work.todo), doing="sampling", unit="records"))
        outcomes = work.outcomes()
        print("\n".join(work.notes), file=sys.stderr, end="\n" if work.notes else "")
        stored = f"{sampled} records sampled, pass rates in {rates}"
        print("\n".join([*table(outcomes), *summary(outcomes, limits), stored]))
        kept = work.write(outcomes, out)
    print(f"{kept} of {len(outcomes)} records kept, in {out}")
    if not config.data.media_root and out.resolve().parent != data.resolve().parent and any(each.sample.media for each in outcomes):
        print(f"media paths are relative to {data.resolve().parent}: set data.media_root to it, to train on {out}", file=sys.stderr)
    return 0


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Records by problem type and verdict, and their mean pass rate."""
    from evr1_core.rollout.results import aligned

    by_type: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_type.setdefault(outcome.sample.task, []).append(outcome)
    parts = [*sorted(by_type.items()), *([("all", outcomes)] if len(by_type) > 1 else [])]
    return aligned([("type", "records", *COLUMNS, "pass rate"), *(_line(name, part) for name, part in parts)])


def _line(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    counts = Counter[str](outcome.verdict for outcome in outcomes)
    rates = [outcome.rate for outcome in outcomes if outcome.rate is not None]
    mean = f"{sum(rates) / len(rates):.4f}" if rates else "-"
    return name, str(len(outcomes)), *(str(counts[column]) for column in COLUMNS), mean


def summary(outcomes: Sequence[Outcome], limits: Limits) -> list[str]:
    """What the pass rates are, and how many responses had no chance to pass."""
    lines = [f"a response passes with accuracy {limits.threshold:g} or more; kept: {limits.low:g} < pass rate < {limits.high:g}"]
    measured = [outcome.measured for outcome in outcomes if outcome.measured is not None]
    truncated = sum(each.truncated for each in measured)
    if truncated:
        share = truncated / sum(len(each.accuracies) for each in measured)
        lines.append(f"{share:.1%} of the responses were cut off at rollout.max_response_tokens")
    return lines


def _check_files(data: Path, out: Path, rates: Path) -> None:
    """Raises DataError for files that could not be written hours later, or would take the place of what is read."""
    problems = []
    if out.suffix.lower() != data.suffix.lower():
        problems.append(f"--out: the kept rows stay as they are, so {out} must end in {data.suffix}")
    for flag, path in (("--out", out), ("--rates", rates)):
        if (path.exists() and not path.is_file()) or not path.parent.is_dir():
            problems.append(f"{flag}: {path} is no file, or its folder does not exist")
        elif not os.access(path.parent, os.W_OK):
            problems.append(f"{flag}: {path.parent} may not be written to")
    same = {"--out": out, "--rates": rates}
    problems += [f"{flag}: {path} is the file that is read" for flag, path in same.items() if _same(path, data)]
    if _same(out, rates):
        problems.append(f"--rates: {rates} is the file that the kept rows go to")
    if problems:
        raise DataError(problems)


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def _option(convert: Callable[[str], float], holds: Callable[[float], bool], wanted: str) -> Callable[[str], float]:
    """A conversion of an option's text that says what is wanted."""

    def take(text: str) -> float:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise argparse.ArgumentTypeError(f"must be {wanted}; is {text}")
        return value

    return take
