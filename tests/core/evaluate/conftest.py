"""A folder of benchmark data with real films, and a tiny real model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evr1_core.demo.scenes import random_scene, write_film
from evr1_core.evaluate.run import Evaluation, prepare
from evr1_core.evaluate.settings import load_settings
from tests.tiny import tiny_folder

SMALL = ("frames.video_max_frames=4", "frames.video_max_pixels=4096", "decoding.max_tokens=8", "frames.video_min_pixels=1024")
VIDEOS = 3
PER_VIDEO = 4


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three films of LiveSports-3K with four questions each."""
    folder = tmp_path_factory.mktemp("data")
    write_release(folder, VIDEOS, PER_VIDEO)
    return folder


def write_release(folder: Path, videos: int, per_video: int) -> None:
    """A release of LiveSports-3K with made-up films."""
    own = folder / "livesports3k_qa"
    (own / "videos").mkdir(parents=True)
    generator = np.random.default_rng(0)
    for number in range(videos):
        write_film(random_scene(generator), own / "videos" / f"v{number}.mp4")
    rows = [
        {
            "video_id": f"v{number % videos}",
            "question_id": f"e1_q{number}",
            "q_type": ("Who", "What", "When")[number % 3],
            "OCR": number % 2,
            "question": f"Which colour is it, said for the {number}. time?",
            "options": ["A: red", "B: green", "C: blue", "D: yellow"],
            "answer": "ABCD"[number % 4],
            "begin": 0.0,
            "end": 3.0,
        }
        for number in range(videos * per_video)
    ]
    (own / "LiveSports-3K-QA.json").write_text(json.dumps(rows), "utf-8")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames that all tests share: a process that decodes takes seconds to start."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def evaluation(root: Path, cache: Path, tmp_path: Path) -> Callable[..., Evaluation]:
    """``evaluation("decoding.max_tokens=4", data=...)``: prepared, with the tiny model; closed by the test."""

    def make(*sets: str, data: Path = root, output: Path = tmp_path / "out", retry_failed: bool = False) -> Evaluation:
        flags = {"model.path": str(tiny_folder()), "data": str(data), "output": str(output), "benchmarks": ["livesports3k_qa"]}
        settings = load_settings("ref", [*SMALL, f"cache.folder={cache}", "workers=2", *sets], flags, "ref")
        return prepare(settings, retry_failed=retry_failed)

    return make
