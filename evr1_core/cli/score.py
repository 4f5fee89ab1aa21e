"""``evr1 score``: stored responses through the rewards, without training."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from evr1_core.api.errors import DataError, PluginError

if TYPE_CHECKING:
    from evr1_core.api.rewards import Reward
    from evr1_core.config.schema import RunConfig
    from evr1_core.rollout.rows import Row
    from evr1_core.rollout.scoring import Scored, Scorer


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


@frozen(kw_only=True)
class Result:
    """What became of a row; ``value`` is what `expected` is compared with."""

    row: Row
    value: float | str | None
    answer: str | None
    scored: Scored | None = None
    parsed: bool
    format: float

    @property
    def accuracy(self) -> float | None:
        """None for a row that was not judged, or that only checks extraction or format."""
        return self.scored.accuracy if self.scored else None


def run(args: argparse.Namespace) -> int:
    """0; 1 when `--expect` finds a difference."""
    from evr1_core.config.sources import load_config
    from evr1_core.rollout.rows import read_rows

    rows = read_rows(args.file)
    if args.expect and not any(row.expects for row in rows):
        raise DataError([f"{args.file}: no row has `expected`, so there is nothing to compare"])
    if args.out and args.out.exists() and args.out.samefile(args.file):
        raise DataError([f"--out: {args.out} is the file that is read"])
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
    return _compare(results) if args.expect else 0


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

    return {name: _built(name, config) for name in names}, {name: resolve("rewards", name).origin for name in names}


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


def _built(name: str, config: RunConfig, key: str = "") -> Reward:
    from evr1_core.config.schema import RewardChoice
    from evr1_core.registry.loading import build_plugin

    options = config.rewards.get(key or name, RewardChoice()).options
    reward: Reward = build_plugin("rewards", name, options, place=f"rewards.{key or name}")
    return reward


def score_rows(rows: Sequence[Row], scorer: Scorer) -> list[Result]:
    """One result a row, in order. Raises DataError that lists every row without a reward or with a broken gold."""
    from evr1_core.rollout.rows import EXTRACT, FORMAT
    from evr1_core.rollout.scoring import score_all

    rows = [_routed(row, scorer) for row in rows]
    graded = [row for row in rows if row.kind not in (EXTRACT, FORMAT)]
    unserved = [problem for row in graded if (problem := scorer.unserved(row.response.sample))]
    if unserved:
        raise DataError(unserved)
    scored, problems = score_all(scorer, [row.response for row in graded])
    if problems:
        raise DataError(problems)
    verdicts = iter(scored)
    return [_checked(row, scorer) if row.kind in (EXTRACT, FORMAT) else _graded(row, scorer, next(verdicts)) for row in rows]


def _routed(row: Row, scorer: Scorer) -> Row:
    """The row under its problem type with subtype, where a reward serves that."""
    if row.subtask not in scorer.tasks:
        return row
    return evolve(row, response=evolve(row.response, sample=evolve(row.response.sample, task=row.subtask)))


def _graded(row: Row, scorer: Scorer, scored: Scored | None) -> Result:
    assert scored is not None  # a row without a result is a problem, raised before
    answer = scorer.answer(row.response.text)
    return Result(
        row=row, value=scored.accuracy, answer=answer, scored=scored, parsed=scored.parsed, format=scored.components["format"]
    )


def _checked(row: Row, scorer: Scorer) -> Result:
    """A row that only checks the extractor or the format."""
    from evr1_core.rollout.form import in_form
    from evr1_core.rollout.rows import EXTRACT

    text = row.response.text
    answer = scorer.answer(text)
    form = float(in_form(text, scorer.config.format, opens_thinking=scorer.opens_thinking))
    return Result(row=row, value=answer if row.kind == EXTRACT else form, answer=answer, parsed=bool(answer), format=form)


def table(results: Sequence[Result]) -> list[str]:
    """The lines of the table by problem type: rows, mean accuracy, mean format, parsed rate, rows that were not judged."""
    by_type: dict[str, list[Result]] = {}
    for result in results:
        by_type.setdefault(result.row.kind, []).append(result)
    head = ("type", "rows", "accuracy", "format", "parsed", "not judged")
    cells = [head, *(_line(kind, group) for kind, group in sorted(by_type.items()))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


def _line(kind: str, group: Sequence[Result]) -> tuple[str, ...]:
    judged = [result.accuracy for result in group if result.accuracy is not None]
    accuracy = f"{sum(judged) / len(judged):.4f}" if judged else "-"
    unjudged = sum(result.scored is not None and not result.scored.judged for result in group)
    form, parsed = (sum(values) / len(group) for values in ([r.format for r in group], [float(r.parsed) for r in group]))
    return kind, str(len(group)), accuracy, f"{form:.4f}", f"{parsed:.4f}", str(unjudged)


def as_json(result: Result) -> dict[str, Any]:
    """A row of the file that `--out` writes."""
    sample, scored = result.row.response.sample, result.scored
    row: dict[str, Any] = {"uid": sample.uid, "origin": sample.origin, "problem_type": sample.task, "answer": result.answer}
    row |= {"parsed": result.parsed, "format": result.format}
    if scored is not None:
        row |= {"reward": scored.reward, "total": scored.total if scored.judged else None, **scored.components}
        row |= {"accuracy": scored.accuracy, "judged": scored.judged, "note": scored.note}
    if result.row.expects:
        row["expected"] = result.row.expected
    return row


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file at once: a reader sees the old file or the whole new one."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _compare(results: Sequence[Result]) -> int:
    """Prints each difference between value and expectation, and how many there are; 1 if there is one."""
    expecting = [result for result in results if result.row.expects]
    different = [result for result in expecting if not _as_expected(result)]
    for result in different:
        sample, note = result.row.response.sample, f"; {result.scored.note}" if result.scored and result.scored.note else ""
        print(f"{sample.origin}: {sample.uid} ({sample.task}): expected {result.row.expected!r}, is {result.value!r}{note}")
    print(f"{len(expecting) - len(different)} of {len(expecting)} rows as expected")
    return 1 if different else 0


def _as_expected(result: Result) -> bool:
    value, expected = result.value, result.row.expected
    if isinstance(value, float) and isinstance(expected, int | float):
        return abs(value - expected) <= result.row.tolerance
    return value == expected
