"""What the demo's second run gains from its sampled rows: the same start, steps and stored rows, without anything sampled.

    python benchmarks/demo_control.py DEMO_FOLDER

Prints JSON: accuracy on multiple choice of the warm start, of the demo, and of the control, and the same for temporal IoU.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from evr1_core.demo.run import evr1, metrics_of


def control(folder: Path) -> dict[str, Any]:
    """Trains the control beside the demo's runs, and compares."""
    settings = yaml.safe_load((folder / "grpo.yaml").read_text())
    (file,) = settings["data"]["train"]
    stored = [row for row in map(json.loads, Path(file).read_text().splitlines()) if row["has_offline_trajectory"]]
    own = folder / "data" / "control.jsonl"
    own.write_text("".join(json.dumps(row) + "\n" for row in stored))
    settings["data"]["train"] = [str(own)]
    settings["mix"] = {"enabled": False}
    config = folder / "control.yaml"
    config.write_text(yaml.safe_dump(settings, sort_keys=False))
    words = ("--rewards", "temporal_iou,mcq", "--config", str(config), "--model", str(folder / "warm" / "model"))
    evr1("run", "--algo", "sft", *words, "--output", str(folder / "control"))
    demo, alone = metrics_of(folder / "grpo"), metrics_of(folder / "control")
    last = max(demo)
    result: dict[str, Any] = {"steps": last, "stored_records": len(stored)}
    for name, key in (("mcq", "val/multiple_choice/accuracy"), ("temporal_iou", "val/temporal_grounding/accuracy")):
        result |= {f"{name}_warm": demo[0][key], f"{name}_demo": demo[last][key], f"{name}_control": alone[last][key]}
    return result | {"gap": result["mcq_demo"] - result["mcq_control"]}


if __name__ == "__main__":
    print(json.dumps(control(Path(sys.argv[1])), indent=2))
