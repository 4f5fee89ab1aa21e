"""Runs the demo: every step is a command that a user can repeat, printed before it runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from evr1_core.api import Evr1Error
from evr1_core.config.sources import load_config
from evr1_core.demo import settings
from evr1_core.demo.dataset import DemoData, corpus_of, write_dataset
from evr1_core.demo.questions import best_constant_iou
from evr1_core.registry.loading import build_plugin
from evr1_core.train.evaluate import evaluate

FAMILY = "qwen3_vl"


def demo(folder: Path, *, seed: int, train_films: int, val_films: int) -> dict[str, Any]:
    """The summary, which is also ``summary.json`` in the folder of the last run."""
    start = time.perf_counter()
    if folder.exists() and any(folder.iterdir()):
        raise Evr1Error(f"{folder} is not empty; name another folder with --output, or remove it")
    say(f"writing {train_films + val_films} films to {folder}")
    data = write_dataset(folder / "data", train_films=train_films, val_films=val_films, seed=seed)
    say("building a tiny Qwen3-VL with random weights")
    tiny = folder / "tiny"
    build_plugin("models", FAMILY, {}, place="demo").tiny(tiny, seed=seed, corpus=corpus_of([data.train]))
    warm_file = settings.write(settings.warm_start(data, seed), folder / "warm.yaml")
    grpo_file = settings.write(settings.reinforcement(data, seed), folder / "grpo.yaml")
    files = [str(path) for path in (data.train, data.val, data.footage) if path]
    evr1("cache", "build", *files, "--config", str(warm_file), "--set", f"model.path={tiny}")
    warm, trained = folder / "warm", folder / "grpo"
    rewards = ("--rewards", "temporal_iou,mcq")
    evr1("run", "--algo", "sft", *rewards, "--config", str(warm_file), "--model", str(tiny), "--output", str(warm))
    evr1("run", "--algo", "grpo", *rewards, "--config", str(grpo_file), "--model", str(warm / "model"), "--output", str(trained))
    say("asking the same questions, each with another question's film")
    blind = _asked(data.blind, grpo_file, trained)["val/multiple_choice/accuracy"]
    summary = _summary(data, warm, trained, blind)
    if data.footage is not None:
        say("asking about real footage, which a model of this size knows nothing of: the path is the same")
        summary["footage_questions"] = int(_asked(data.footage, grpo_file, trained)["val/samples"])
    summary["seconds"] = round(time.perf_counter() - start, 1)
    (trained / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    return summary


def _asked(questions: Path, config_file: Path, trained: Path) -> dict[str, float]:
    """What the trained model answers to a data file."""
    sets = [f"data.val=[{json.dumps(str(questions))}]", f"model.path={json.dumps(str(trained / 'model'))}"]
    return evaluate(load_config(config_file, [*sets, f"output={json.dumps(str(trained))}"], {})).metrics


def _summary(data: DemoData, warm: Path, trained: Path, blind: float) -> dict[str, Any]:
    before, after = metrics_of(warm), metrics_of(trained)
    mcq, iou = "val/multiple_choice/accuracy", "val/temporal_grounding/accuracy"
    spans = [row for row in map(json.loads, data.val.read_text().splitlines()) if row["problem_type"] == "temporal grounding"]
    constant, _ = best_constant_iou(spans, settings.LONGEST)
    last = max(after)
    return {
        "mcq_before": before[0][mcq],
        "mcq_warm": after[0][mcq],
        "mcq_after": after[last][mcq],
        "mcq_blind": blind,
        "temporal_iou_before": before[0][iou],
        "temporal_iou_warm": after[0][iou],
        "temporal_iou_after": after[last][iou],
        "temporal_iou_constant": constant,
        "steps": {"sft": max(before), "grpo": last},
        "questions": int(after[last]["val/multiple_choice/samples"] + after[last]["val/temporal_grounding/samples"]),
    }


def metrics_of(run: Path) -> dict[int, dict[str, float]]:
    """The metrics of a run folder, by step."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {int(row["step"]): row for row in rows}


def evr1(*arguments: str) -> None:
    """Prints a command and runs it in a process of its own, as a user would."""
    say(shlex.join(("evr1", *arguments)))
    done = subprocess.run([sys.executable, "-m", "evr1_core", *arguments], check=False)
    if done.returncode:
        raise Evr1Error(f"`{shlex.join(('evr1', *arguments))}` ended with status {done.returncode}")


def say(text: str) -> None:
    """One line of progress."""
    print(f"==> {text}", flush=True)


def table(summary: dict[str, Any]) -> str:
    """The summary for people."""
    lines = ["", f"{'':16}{'before':>9}{'warm':>9}{'after':>9}{'not looking':>13}"]
    for name, title, blind in (("mcq", "multiple choice", "mcq_blind"), ("temporal_iou", "temporal IoU", "temporal_iou_constant")):
        values = [summary[f"{name}_{when}"] for when in ("before", "warm", "after")]
        lines.append(f"{title:16}" + "".join(f"{value:9.3f}" for value in values) + f"{summary[blind]:13.3f}")
    return "\n".join([*lines, f"{summary['questions']} validation questions, {summary['seconds']:.0f} seconds", ""])
