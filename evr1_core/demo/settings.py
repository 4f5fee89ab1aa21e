"""The settings of the demo's runs, as a user would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from evr1_core.demo.dataset import DemoData

LONGEST = 6  # seconds of the longest film


def common(data: DemoData, seed: int) -> dict[str, Any]:
    """What the warm start and the reinforcement learning share."""
    return {
        "data": {"train": [str(data.train)], "val": [str(data.val)], "media_root": str(data.root)},
        "frames": {"video_fps": 2.0, "video_min_pixels": 9216, "video_max_pixels": 9216},
        "cache": {"folder": str(data.root.parent / "cache")},
        "rewards": {"temporal_iou": {}, "mcq": {}},
        "rollout": {"max_response_tokens": 24, "max_prompt_tokens": 512},
        "train": {"betas": [0.9, 0.99], "schedule": "linear", "min_lr_ratio": 0.1, "threads": 1, "seed": seed},
        "log": {"samples_every": 25},
    }


def warm_start(data: DemoData, seed: int) -> dict[str, Any]:
    """Supervised steps, stopped when the model is about half right."""
    settings = common(data, seed)
    settings["data"]["train"] = [str(data.warm)]
    settings["train"] |= {"steps": 300, "prompts_per_step": 16, "groups_per_batch": 16, "lr": 2e-3, "warmup_steps": 20}
    return settings


def reinforcement(data: DemoData, seed: int) -> dict[str, Any]:
    """GRPO; stored trajectories stand in the last slot of temporal grounding groups alone."""
    settings = common(data, seed)
    settings["train"] |= {"steps": 110, "prompts_per_step": 24, "groups_per_batch": 12, "lr": 6e-4, "warmup_steps": 10}
    settings["rollout"] |= {"n": 8}
    settings["mix"] = {"enabled": True}
    settings["val"] = {"before": True}
    return settings


def write(settings: dict[str, Any], path: Path) -> Path:
    """The settings as a YAML file."""
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return path
