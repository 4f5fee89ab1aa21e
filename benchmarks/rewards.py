"""How many responses a second the rewards score, on one core.

    python benchmarks/rewards.py [--count 4096] [--math-count 400]

Prints JSON. `together`: `count` responses of about 300 characters, spread evenly over the rewards other than math, through
extraction, routing, form and composition; all records differ, so that no rendering or parsing of a gold is met twice. Imports and
one response a problem type come before the clock starts. `cpu_s` is the processor time of this process and its workers, without
workers that were killed meanwhile; `wall_s` also holds whatever else the machine did.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from _made import MAKERS, made

from evr1_core.api import PluginError, Reward
from evr1_core.config.schema import RewardConfig
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.scoring import Response, Scorer

APART = "math"


def loaded() -> tuple[dict[str, Reward], dict[str, str]]:
    """The rewards that can be loaded, and why the others cannot."""
    rewards: dict[str, Reward] = {}
    skipped: dict[str, str] = {}
    for name in MAKERS:
        try:
            rewards[name] = build_plugin("rewards", f"evr1/{name}", {}, place="benchmark")
        except PluginError as error:
            skipped[name] = str(error)
    return rewards, skipped


def responses(names: Sequence[str], count: int) -> list[Response]:
    """``count`` responses to as many records, in turn from each of ``names``; the same each time."""
    rng = random.Random(0)
    drawn = (made(names[number % len(names)], rng, number) for number in range(count))
    return [Response(sample=sample, text=text) for sample, text in drawn]


def timed(rewards: Mapping[str, Reward], items: Sequence[Response]) -> dict[str, float]:
    """Seconds and responses a second for ``items``."""
    scorer = Scorer(rewards, {}, RewardConfig(), max_tokens=1024)
    scorer.score([Response(sample=item.sample, text=item.text) for item in {item.sample.task: item for item in items}.values()])
    wall, cpu = time.perf_counter(), worked()
    scorer.score(items)
    wall, cpu = time.perf_counter() - wall, worked() - cpu
    return {"responses": len(items), "wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "per_s": round(len(items) / wall, 1)}


def worked() -> float:
    """Seconds of processor time that this process and its living children have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=4096, help="responses over the rewards other than math")
    parser.add_argument("--math-count", type=int, default=400, help="responses for math")
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, for worker processes too
    rewards, skipped = loaded()
    names = [name for name in rewards if name != APART]
    items = responses(names, args.count)
    length = sum(len(item.text) for item in items) / len(items)
    report: dict[str, object] = {"together": {**timed(rewards, items), "mean_characters": round(length)}}
    report["each"] = {name: timed({name: rewards[name]}, responses([name], -(-args.count // len(names)))) for name in names}
    if APART in rewards:
        report["math"] = timed({APART: rewards[APART]}, responses([APART], args.math_count))
    report["skipped"] = skipped
    for reward in rewards.values():
        reward.close()
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
