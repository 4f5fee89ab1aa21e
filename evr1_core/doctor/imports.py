"""Whether the packages that do the work can be imported together, tried in processes of their own; devices and FFmpeg with them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from evr1_core.doctor.finding import Finding
from evr1_core.doctor.packages import DISPENSABLE, VLLM, installed

LIMIT = 180.0  # seconds for one import; vLLM's takes 15 on a slow machine
PROBE = "evr1_core.doctor._probe"
GIB = 1 << 30


@frozen
class Imports:
    """What each step found, and why it failed: the step's name to the last line of its error."""

    found: Mapping[str, Mapping[str, Any]]
    failed: Mapping[str, str]


def tried(steps: Sequence[str]) -> Imports:
    """Imports ``steps`` in one process, as a run does; after a failure the rest in another."""
    found: dict[str, Mapping[str, Any]] = {}
    failed: dict[str, str] = {}
    left = list(steps)
    while left:
        lines, reason = _probed(left)
        found |= {line["step"]: line["found"] for line in lines if "found" in line}
        last = lines[-1]["step"] if lines else left[0]
        if last not in found:
            failed[last] = reason
        elif last != left[-1]:  # it ended between two steps
            last = left[left.index(last) + 1]
            failed[last] = reason
        left = left[left.index(last) + 1 :]
    return Imports(found, failed)


def _probed(steps: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    command = [sys.executable, "-m", PROBE, *steps]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT * len(steps), stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        out = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return _json_lines(out), f"it was not done after {LIMIT * len(steps):.0f} seconds"
    if done.returncode < 0:
        return _json_lines(done.stdout), f"the process was ended by signal {-done.returncode}"
    return _json_lines(done.stdout), (done.stderr.strip() or f"exit status {done.returncode}").rpartition("\n")[2]


def _json_lines(text: str) -> list[dict[str, Any]]:
    """Packages print too while they are imported: only our own lines count."""
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"step": ')]


def media(imports: Imports) -> Iterator[Finding]:
    """PyAV and its FFmpeg, which decode; the ``ffmpeg`` command, which nothing here needs."""
    if "av" in imports.failed:
        yield _broken("media", "av", imports.failed["av"], "pip install --force-reinstall av")
    else:
        found = imports.found["av"]
        yield Finding("media", "av", f"{installed('av')}, with FFmpeg {found['ffmpeg']}")
        if found["missing"]:
            yield Finding(
                "media",
                "codecs",
                f"this FFmpeg does not decode {', '.join(found['missing'])}",
                "note",
                "videos in these cannot be used: convert them, or install the wheel of av, whose FFmpeg has them",
            )
    path = shutil.which("ffmpeg")
    value = _first_line([path, "-version"]) if path else "not installed; only benchmarks and some tests call it"
    yield Finding("media", "ffmpeg command", value)


def imported(imports: Imports) -> Iterator[Finding]:
    """torchvision's state, and what of the rest cannot be imported."""
    if "torch" in imports.failed:
        yield _broken("imports", "torch", imports.failed["torch"], "install the build for this machine: docs/install.md")
    if "torchvision" in imports.failed:
        advice = "install the torchvision that belongs to this torch: docs/install.md"
        yield _broken("imports", "torchvision", imports.failed["torchvision"], advice)
    elif imports.found["torchvision"]["hook"]:
        value = "evr1's import hook is active: the compiled extension does not load beside this torch"
        advice = "nothing here needs the extension; what does, such as nms, needs a build for this torch: docs/install.md"
        yield Finding("imports", "torchvision", value, "note", advice)
    else:
        yield Finding("imports", "torchvision", "its compiled extension is loaded")
    if "transformers" in imports.failed:
        blamed = [name for name in sorted(DISPENSABLE) if installed(name)]
        advice = f"pip uninstall {' '.join(blamed)}" if blamed else "see the conflicts under versions, or install it again"
        yield _broken("imports", "transformers", imports.failed["transformers"], advice)
    else:
        yield Finding("imports", "transformers", "its processors are imported")
    if "vllm" in imports.failed:
        advice = "install the vllm that belongs to this torch: docs/install.md; rollout.engine: hf works without"
        yield _broken("imports", "vllm", imports.failed["vllm"], advice)
    elif "vllm" in imports.found:
        yield Finding("imports", "vllm", f"imported; it runs on: {imports.found['vllm']['platform']}")


def steps() -> list[str]:
    """What is to be imported here."""
    return ["av", "torch", "torchvision", "transformers", *(["vllm"] if any(map(installed, VLLM)) else [])]


def devices(imports: Imports, driver: Path = Path("/proc/driver/nvidia/version")) -> Iterator[Finding]:
    """Each GPU that torch can use; a GPU that it cannot."""
    found = imports.found.get("torch", {"devices": [], "built_for": None})
    for number, each in enumerate(found["devices"]):
        free, total = (each[key] / GIB for key in ("free", "total"))
        yield Finding("devices", f"GPU {number}", f"{each['name']}, {total:.1f} GiB, {free:.1f} GiB of it free")
    command = shutil.which("nvidia-smi")
    version = _first_line([command, "--query-gpu=driver_version", "--format=csv,noheader"]) if command else ""
    if driver.is_file() or version:
        built = found["built_for"]
        yield Finding("devices", "driver", f"NVIDIA {version}" if version else driver.read_text("utf-8").splitlines()[0])
        if not found["devices"] and "torch" not in imports.failed:
            if built:
                value = f"torch, built for CUDA {built}, can use none: training would run on the CPU"
                advice = "update the driver, or install a torch built for it; check CUDA_VISIBLE_DEVICES"
                yield Finding("devices", "GPU", value, "stop", advice)
            else:
                advice = "install a build of torch for CUDA: docs/install.md"
                yield Finding("devices", "GPU", "torch is a build for CPUs and does not use the GPU", "note", advice)
    elif "torch" in imports.failed:
        yield Finding("devices", "GPU", "unknown: torch cannot be imported")
    elif not found["devices"]:
        yield Finding("devices", "GPU", "none: models run on the CPU")


def _first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{command[0]} fails: {error}"
    return done.stdout.partition("\n")[0].strip()


def _broken(section: str, name: str, reason: str, advice: str) -> Finding:
    return Finding(section, name, f"cannot be imported: {reason}", "stop", advice)
