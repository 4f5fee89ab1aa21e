"""What the machine has left: processors, memory, disk, open files, and whether programs can be confined."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from evr1_core.api._confined import landlock_version
from evr1_core.api.sandbox import NotConfinedError, mode
from evr1_core.doctor.finding import Finding, Level

GIB = 1 << 30
# Below the first amount a run ends, below the second one of ordinary size may.
MEMORY = (1 * GIB, 8 * GIB)  # importing everything takes 0.5 GiB, a tiny model as much again
DISK = (GIB // 4, 10 * GIB)  # a checkpoint of a tiny model; an hour's video of frames
SHARED = GIB // 4  # in /dev/shm, where vLLM's processes share tensors; containers get 64 MiB unless told otherwise
FILES = (128, 1024)
CGROUP = Path("/sys/fs/cgroup")


def machine(places: Mapping[str, Path], shared: bool) -> Iterator[Finding]:
    """``places``: a word for each folder that is written to, and the folder. ``shared``: /dev/shm matters."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("machine", "processors", f"{cores}")
    yield memory(available(Path("/proc/meminfo"), CGROUP))
    for word, path in places.items():
        yield disk(word, path)
    if Path("/dev/shm").is_dir():
        yield _shared_memory(shutil.disk_usage("/dev/shm").free, shared)
    yield open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))


def memory(free: int | None) -> Finding:
    """Main memory that a run can take; None where that cannot be told."""
    if free is None:
        return Finding("machine", "memory", "unknown: there is no /proc/meminfo")
    return Finding("machine", "memory", f"{_gib(free)} free", _level(free, MEMORY), "end other programs, or use a larger machine")


def disk(word: str, path: Path) -> Finding:
    """Room in a folder, or in what is there of its path."""
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            "machine", word, f"{path}: {there} cannot be written to", "stop", "change its owner, or choose another folder"
        )
    free = shutil.disk_usage(there).free
    return Finding(
        "machine", word, f"{path}: {_gib(free)} free", _level(free, DISK), "make room, or choose a folder on another disk"
    )


def _shared_memory(free: int, matters: bool) -> Finding:
    level: Level = "note" if matters and free < SHARED else "ok"
    advice = f"vLLM and weights on their way to it need more: docker run --shm-size=8g; they fall back to {tempfile.gettempdir()}"
    return Finding("machine", "shared memory", f"/dev/shm: {_gib(free)} free", level, advice if level != "ok" else "")


def open_files(soft: int, hard: int) -> Finding:
    """The limit on open files of a process."""
    most = "no limit" if hard == resource.RLIM_INFINITY else f"{hard}"
    if soft == resource.RLIM_INFINITY:
        return Finding("machine", "open files", "no limit")
    advice = f"ulimit -n {max(FILES[1], 65536) if hard == resource.RLIM_INFINITY else hard}"
    return Finding("machine", "open files", f"{soft} for each process, at most {most}", _level(soft, FILES), advice)


def sandbox() -> Finding:
    """How programs that a model wrote are confined: docs/sandbox.md."""
    try:
        how = mode()
    except NotConfinedError as error:
        advice = "rewards that run programs do not start here; all else does. What a machine must allow: docs/sandbox.md"
        return Finding("sandbox", "programs", str(error), "note", advice)
    value = {"user": "confined, in a user namespace", "root": "confined by root, without a user namespace"}[how]
    abi = landlock_version()
    return Finding("sandbox", "programs", f"{value}; Landlock on top: {f'version {abi}' if abi else 'not in this kernel'}")


def available(meminfo: Path, cgroup: Path) -> int | None:
    """Bytes: the kernel's estimate, or what the limit of a container leaves if that is less."""
    if not meminfo.is_file():
        return None
    free = int(_table(meminfo)["MemAvailable:"]) * 1024
    limit = cgroup / "memory.max"
    if limit.is_file() and (text := limit.read_text("utf-8").strip()) != "max":
        used = int((cgroup / "memory.current").read_text("utf-8"))
        cached = int(_table(cgroup / "memory.stat")["inactive_file"])  # counted as used, and given back when asked for
        free = min(free, max(0, int(text) - used + cached))
    return free


def _table(path: Path) -> dict[str, str]:
    """First and second word of each line."""
    return {words[0]: words[1] for words in map(str.split, path.read_text("utf-8").splitlines())}


def _level(amount: int, bounds: tuple[int, int]) -> Level:
    return "stop" if amount < bounds[0] else "note" if amount < bounds[1] else "ok"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
