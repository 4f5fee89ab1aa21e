"""``evr1 eval``: runs benchmarks on a model, judges what waits for a judge, shows what there is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evr1_core.api.errors import DataError

if TYPE_CHECKING:
    from evr1_core.evaluate.judging import Judging
    from evr1_core.evaluate.run import Evaluation
    from evr1_core.evaluate.settings import Settings

INCOMPLETE = 1  # exit status: questions are left, such as those that wait for a judge who is away


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("action", nargs="*", metavar="compare A B", help="show how two finished evaluations differ")
    parser.add_argument("--model", metavar="FOLDER", help="checkpoint to evaluate")
    parser.add_argument("--benchmarks", metavar="A,B", help="benchmarks by name; all: those whose annotations are there")
    parser.add_argument("--data", metavar="ROOT", help="folder with one folder for each benchmark; `--list` shows what is found")
    parser.add_argument("--output", metavar="FOLDER", help="where rows and reports go, and a stopped run goes on")
    parser.add_argument("--protocol", metavar="NAME", help="qwen3_vl, qwen2_5_vl, ref, or a YAML file (default: by model)")
    parser.add_argument("--engine", metavar="NAME", help="what the model runs in: hf (default) or vllm")
    parser.add_argument("--source", choices=("auto", "official", "normalised"), help="which annotations to read (default: auto)")
    parser.add_argument("--limit", type=int, metavar="N", help="first so many questions of each benchmark")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one setting, such as frames.video_fps=1; repeatable"
    )
    parser.add_argument("--judge-only", action="store_true", help="ask no question; judge the answers that wait for it")
    parser.add_argument("--retry-failed", action="store_true", help="ask again what failed for its media or the engine")
    parser.add_argument(
        "--responses", type=Path, metavar="FILE", help="score these responses (.jsonl), made elsewhere, without a model"
    )
    parser.add_argument("--flips", type=int, default=10, metavar="N", help="compare: name so many flipped questions (default: 10)")
    parser.add_argument("--list", action="store_true", help="show the benchmarks and what of their data is found, and stop")
    parser.add_argument("--markdown", action="store_true", help="with --list: the page docs/benchmarks.md")


def run(args: argparse.Namespace) -> int:
    """Runs, judges, compares or lists, and prints the table."""
    if args.action:
        return _compare(args.action, args.flips)
    if args.markdown:
        from evr1_core.evaluate.reference import as_markdown

        print(as_markdown(), end="")
        return 0
    settings = _settings(args)
    if args.list:
        return _list(settings, _names(args.benchmarks) or None)
    from evr1_core.evaluate.run import prepare, say

    if args.responses and not args.responses.is_file():
        raise DataError([f"--responses: there is no file {args.responses}"])
    evaluation = prepare(settings, retry_failed=args.retry_failed, responses=args.responses)
    try:
        say(evaluation.notes)
        judging = _done(evaluation, args)
        if judging.outage:
            say([f"the judge is away, its rows wait for --judge-only: {judging.outage}"])
        return _show(evaluation)
    finally:
        evaluation.close()


def _done(evaluation: Evaluation, args: argparse.Namespace) -> Judging:
    if args.judge_only:
        return evaluation.judge()
    return evaluation.take(args.responses) if args.responses else evaluation.ask()


def _compare(words: Sequence[str], flips: int) -> int:
    from evr1_core.evaluate.compare import compared, lines, remarks
    from evr1_core.rollout.results import aligned

    if words[0] != "compare" or len(words) != 3:
        raise DataError([f"evr1 eval {' '.join(words)}: must be `evr1 eval compare RUN_A RUN_B`, or options alone"])
    found = compared(Path(words[1]), Path(words[2]))
    print("\n".join([*aligned(lines(found)), *remarks(found, flips)]))
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    from evr1_core.evaluate.listing import with_annotations
    from evr1_core.evaluate.settings import load_settings

    flags = {
        "model.path": args.model,
        "data": args.data,
        "output": args.output,
        "source": args.source,
        "limit": args.limit,
        "engine": args.engine,
        "benchmarks": _names(args.benchmarks),
    }
    default = _default_protocol(args.model)
    settings = load_settings(args.protocol, args.set, flags, default)
    if args.benchmarks == "all" and not args.list:
        flags["benchmarks"] = with_annotations(settings.config())
        settings = load_settings(args.protocol, args.set, flags, default)
    if args.output is None and not settings.values.get("output"):
        flags["output"] = (
            f"evals/{(args.responses.stem if args.responses else Path(args.model or 'model').name)}-{settings.protocol}"
        )
        settings = load_settings(args.protocol, args.set, flags, default)
    return settings


def _names(text: str | None) -> list[str] | None:
    """The names in a list; None for no list, and for all."""
    return None if text is None or text == "all" else [name.strip() for name in text.split(",") if name.strip()]


def _default_protocol(model: str | None) -> str:
    """The preset of the model's own report."""
    if model is None:
        return "qwen3_vl"
    from evr1_core.train.session import read_model_type

    return "qwen2_5_vl" if read_model_type(model).startswith("qwen2") else "qwen3_vl"


def _list(settings: Settings, names: Sequence[str] | None) -> int:
    from evr1_core.evaluate.listing import HEAD, installed, survey
    from evr1_core.rollout.results import aligned

    found = list(survey(settings.config(), names or installed()))
    print("\n".join(aligned([HEAD, *(each.cells for each in found)])))
    for each in found:
        if each.problem:
            print(f"{each.benchmark.id}: {each.problem}")
    return 0


def _show(evaluation: Evaluation) -> int:
    from evr1_core.evaluate.report import lines, remarks
    from evr1_core.rollout.results import aligned

    summaries = evaluation.report()
    print("\n".join(aligned(lines(summaries))))
    for remark in remarks(summaries):
        print(remark)
    print(f"reports in {evaluation.config.output}", file=sys.stderr)
    counts = [summary["counts"] for summary in summaries]
    return INCOMPLETE if any(each["n_unjudged"] or each["n_missing"] for each in counts) else 0
