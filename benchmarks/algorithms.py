"""Whether every algorithm learns: the demo's multiple-choice task, all from the same warm start.

    evr1 demo --output DEMO_FOLDER
    python benchmarks/algorithms.py DEMO_FOLDER [--algos grpo rloo ...] [--steps 30] [--only learning cold]

Prints JSON. `learning`: for each algorithm the steps until its validation accuracy is 0.8 or more, its accuracy at the end, and
wall seconds; the start, the data, the seed, the learning rate and the number of responses are the same for all. Two differ:
`grpo_passk` samples 2 responses and is judged by pass@2; `luffy` gets right stored trajectories in the last slot of their groups.
`cold`: mean reward from the untrained model, on grounding, with and without a stored trajectory in the last slot. Runs stand below
DEMO_FOLDER/algorithms; finished ones are not run again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import yaml

from evr1_core.demo.run import evr1, metrics_of
from evr1_core.registry.catalog import Catalog

ACCURACY = "val/multiple_choice/accuracy"
GOAL = 0.8
EVERY = 5  # steps between validations
Settings = dict[str, Any]

SPECIAL: Mapping[str, Settings] = {
    "grpo_passk": {"rollout": {"n": 2}, "val": {"n": 2}},
    "luffy": {"mix": {"enabled": True, "min_offline_score": 0.95}},
    "ppo": {"critic": {"lr": 1e-3}},
}
# What these algorithms do about accuracies that agree, or long responses, is told apart by sections of their own.
FIXED: Settings = {"reward": {"overlong_buffer": 0.0}}


def algorithms() -> list[str]:
    """All that sample."""
    names = [ref.name for ref in Catalog.scan().group("algorithms") if ref.dist == "evr1"]
    return sorted(name for name in names if name != "sft")


def merged(base: Settings, more: Mapping[str, Any]) -> Settings:
    out = dict(base)
    for key, value in more.items():
        out[key] = merged(out.get(key, {}), value) if isinstance(value, Mapping) else value
    return out


def rows_of(path: Path, task: str) -> list[Settings]:
    return [row for row in map(json.loads, path.read_text().splitlines()) if row["problem_type"] == task]


def written(rows: Sequence[Settings], path: Path) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def common(demo: Path, folder: Path, task: str) -> Settings:
    """The demo's own settings, on one of its tasks."""
    settings: Settings = yaml.safe_load((demo / "grpo.yaml").read_text())
    settings["data"] |= {"val": [written(rows_of(demo / "data" / "val.jsonl", task), folder / "val.jsonl")]}
    settings["mix"] = {"enabled": False}
    settings["log"] = {"samples_every": 0, "trackers": [{"name": "jsonl"}]}
    settings["alarms"] = {"patience": 0}
    return settings


def trained(name: str, algorithm: str, settings: Settings, model: Path, folder: Path) -> tuple[Path, float]:
    """(run folder, wall seconds), from an earlier call where there is one."""
    run, clock = folder / name, folder / f"{name}.seconds"
    if not clock.exists():
        shutil.rmtree(run, ignore_errors=True)
        config = folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump(settings, sort_keys=False))
        start = time.perf_counter()
        rewards = ("--rewards", "temporal_iou,mcq", "--config", str(config), "--model", str(model), "--output", str(run))
        with redirect_stdout(sys.stderr):  # the command: JSON alone goes to the output
            evr1("run", "--algo", algorithm, *rewards)
        clock.write_text(str(time.perf_counter() - start))
    return run, float(clock.read_text())


def learning(demo: Path, folder: Path, names: Sequence[str], steps: int) -> dict[str, Any]:
    """A row an algorithm."""
    base = merged(common(demo, folder, "multiple choice"), FIXED)
    rows = [row | {"has_offline_trajectory": True} for row in rows_of(demo / "data" / "train.jsonl", "multiple choice")]
    base["data"]["train"] = [written(rows, folder / "train.jsonl")]
    base["train"] |= {"steps": steps, "schedule": "constant", "warmup_steps": 5, "lr": 2e-4}  # slow enough to tell them apart
    base["val"] = {"every": EVERY, "before": True}
    table = {}
    for name in names:
        run, seconds = trained(name, name, merged(base, SPECIAL.get(name, {})), demo / "warm" / "model", folder)
        key = ACCURACY.replace("accuracy", "pass@2") if name == "grpo_passk" else ACCURACY
        curve = {step: row[key] for step, row in metrics_of(run).items() if key in row}
        reached = [step for step, value in sorted(curve.items()) if value >= GOAL]
        table[name] = {
            "start": round(curve[0], 3),
            "steps_to_goal": reached[0] if reached else None,
            "final": round(curve[max(curve)], 3),
            "seconds": round(seconds),
            "judged_by": key.rpartition("/")[2],
        }
        print(f"{name}: {json.dumps(table[name])}", file=sys.stderr, flush=True)
    return table


def cold(demo: Path, folder: Path, steps: int) -> dict[str, Any]:
    """Mean reward of sampled responses, by step, of a model that knows nothing."""
    folder = folder / "cold"
    folder.mkdir(exist_ok=True)
    base = merged(common(demo, folder, "temporal grounding"), FIXED)
    base["data"]["train"] = [written(rows_of(demo / "data" / "warm.jsonl", "temporal grounding"), folder / "train.jsonl")]
    base["train"] |= {"steps": steps, "schedule": "constant", "warmup_steps": 5, "lr": 2e-3}
    base["val"] = {"before": False}
    curves = {}
    for name, mix in (("with", True), ("without", False)):
        run, _ = trained(name, "grpo", merged(base, {"mix": {"enabled": mix}}), demo / "tiny", folder)
        rewards = [row["critic/score/mean"] for _, row in sorted(metrics_of(run).items())]
        curves[name] = [round(sum(rewards[i : i + 10]) / len(rewards[i : i + 10]), 3) for i in range(0, len(rewards), 10)]
    return {"mean_reward_of_each_10_steps": curves}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path)
    parser.add_argument("--algos", nargs="+", choices=algorithms(), default=algorithms())
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--cold-steps", type=int, default=150)
    parser.add_argument("--only", nargs="+", choices=["learning", "cold"], default=["learning", "cold"])
    args = parser.parse_args()
    folder = args.demo / "algorithms"
    folder.mkdir(exist_ok=True)
    out: dict[str, Any] = {}
    if "learning" in args.only:
        out["learning"] = learning(args.demo, folder, args.algos, args.steps)
    if "cold" in args.only:
        out["cold"] = cold(args.demo, folder, args.cold_steps)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
