"""One run for each model family, on records of text, images, videos, and several of both in one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from evr1_core.cli.main import main
from evr1_core.demo.dataset import write_dataset
from evr1_core.registry.loading import load_class, resolve


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve records, three of each make."""
    folder = tmp_path_factory.mktemp("families")
    data = write_dataset(folder / "data", train_films=2, val_films=1, seed=4)
    films = sorted(str(path) for path in (data.root / "films").glob("*.mp4"))
    images = []
    for number in range(2):
        pixels = np.random.default_rng(number).integers(0, 256, (60 + 30 * number, 90, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        images.append(str(folder / f"{number}.png"))
    kinds = {
        "Which letter is first?": {},
        "<image>What is this?": {"images": images[:1]},
        "<video>What moves?": {"videos": films[:1]},
        "First <image> then <video> and <image> then <video>: the same?": {"images": images, "videos": films[:2]},
    }
    rows = [
        {
            "problem": problem,
            "answer": "<answer>A</answer>",
            "options": ["A. yes", "B. no"],
            "problem_type": "multiple choice",
            **media,
        }
        for problem, media in kinds.items()
    ]
    path = folder / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in 3 * rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"])
def test_every_family_trains_on_any_mixture(name: str, records: Path, tmp_path: Path):
    load_class(resolve("models", name))().tiny(tmp_path / "tiny", width=64, vision_width=64)
    plain = {
        "model": {"path": str(tmp_path / "tiny")},
        "data": {"train": [str(records)], "val": [str(records)], "shuffle": False},
        "frames": {"video_frames": 5, "video_max_pixels": 4096, "image_max_pixels": 8192},
        "cache": {"folder": str(records.parent / "cache")},
        "rewards": {"mcq": {}},
        "rollout": {"n": 2, "max_response_tokens": 8},
        "train": {"steps": 2, "prompts_per_step": 4, "groups_per_batch": 4, "lr": 1e-4, "threads": 1},
        "val": {"max_samples": 4},
        "log": {"trackers": [{"name": "jsonl"}]},
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(plain))
    assert main(["run", "--algo", "grpo", "--config", str(tmp_path / "run.yaml"), "--output", str(tmp_path / "out")]) == 0
    last = json.loads((tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["training/global_step"] == 2
    assert math.isfinite(last["actor/pg_loss"])
    assert last["val/samples"] == 4
    assert json.loads((tmp_path / "out" / "model" / "config.json").read_text())["model_type"] == name
