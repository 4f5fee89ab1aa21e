"""What stored results of sampling depend on, as short hashes: who must not meet results of other settings, compares these."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from attrs import asdict

from evr1_core.api import Sample, Sampling
from evr1_core.config.choices import chosen
from evr1_core.config.manifest import plugin_record
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import resolved

LENGTH = 16  # hexadecimal digits
MODEL_FILES = (".safetensors", ".bin", ".pt", ".json", ".jinja", ".model", ".txt")
BLOCK, STRIDE = 1 << 16, 1 << 24  # of large files so many bytes are read in every so many: no matrix of 16 MiB changes unseen


def settings_id(config: RunConfig, sampling: Sampling) -> str:
    """Of all that decides which responses are drawn and how accurate they are: checkpoint (by content), prompt templates, frames,
    sampling with its seed, rewards and their plugins. Neither batch sizes nor options of the engine, nor how a reward is weighed.
    """
    plugins = [plugin_record(choice) for choice in chosen(config) if choice.group in ("engines", "models", "rewards")]
    frames, rewards, reward = resolved(config.frames), resolved(config.rewards), config.reward
    return _hash(
        {
            "model": checkpoint_id(Path(config.model.path)),
            "dtype": config.model.dtype,
            "family": resolved(config.model.family),
            "prompts": [config.data.prompt_style, _templates(config.data.templates)],
            "frames": frames,
            "sampling": asdict(sampling),
            "seed": config.train.seed,
            "rewards": {name: choice["options"] for name, choice in rewards.items()},
            "reward": [reward.fallback, reward.format.reasoning_tag],
            "plugins": sorted(plugins, key=lambda record: (record["group"], record["name"])),
        }
    )


def record_id(sample: Sample, root: Path) -> str:
    """Of what a record asks and expects, and the names and sizes of its files. ``root``: the folder that these lie below."""
    media = [
        [each.kind, os.path.relpath(each.path, root), Path(each.path).stat().st_size, *(each.span or ())] for each in sample.media
    ]
    return _hash([sample.task, sample.problem, sample.answer, sample.options, media, sample.extra])


def checkpoint_id(folder: Path) -> str:
    """Of the content of a checkpoint folder, wherever it lies."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in MODEL_FILES and path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}:".encode())
        with path.open("rb") as file:
            for start in range(0, size, STRIDE if size > STRIDE else BLOCK):
                file.seek(start)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:LENGTH]


def _templates(folder: str) -> list[list[str]]:
    return [[path.name, path.read_text("utf-8")] for path in sorted(Path(folder).glob("*.jinja"))] if folder else []


def _hash(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]
