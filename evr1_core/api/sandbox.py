"""Runs made-up Python programs where they can reach nothing: no file but the interpreter's, no network, no other process.

What is enforced, and where: docs/sandbox.md. Where it cannot be enforced, nothing runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen, validators

from evr1_core.api._syscalls import MACHINES, program
from evr1_core.api.errors import ConfigError, Evr1Error

Status = Literal["ok", "error", "killed", "time"]
SCRIPT = Path(__file__).with_name("_confined.py")
MEBIBYTE = 1 << 20
LONGEST_OUTPUT = 1 << 20  # bytes that are read back of each stream
GRACE = 30.0  # seconds for starting and ending on a busy machine

# Says what a program sees; compared with what it should see before the first real one runs.
_PROBE = """
import json, os, socket
def grows():
    try:
        return os.memfd_create("probe") >= 0
    except OSError:
        return False
def found(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
    except OSError:
        return False
def writes(path):
    try:
        open(path, "w").close()
        return True
    except OSError:
        return False
print(json.dumps({
    "root": os.getuid() == 0 or os.geteuid() == 0,
    "files": found("/etc/passwd") or found("/proc") or found("/home"),
    "writing": any(map(writes, ("/probe", "/usr/probe", "/etc/probe", "/dev/shm/probe"))),
    "network": [name for _, name in socket.if_nameindex() if name != "lo"] != [],
    "processes": os.getpid() > 9,
    "memory beyond its limit": grows(),
    "environment": any(name not in ("LC_CTYPE",) for name in os.environ),
}))
"""


class NotConfinedError(Evr1Error):
    """Programs cannot be confined on this machine, so none is run."""


@frozen(kw_only=True)
class Run:
    """What became of a program. ``ok``: exit code 0; ``error``: another; ``killed``: by a signal, as of a limit; ``time``: the time
    limit was reached. Output beyond a mebibyte of each stream is cut off.
    """

    status: Status
    stdout: str
    stderr: str


def _limit(default: Any, help_text: str) -> Any:
    return field(default=default, validator=validators.gt(0), metadata={"help": help_text})


@frozen(kw_only=True)
class Sandbox:
    """The limits of a program. Its fields are options wherever programs are run."""

    seconds: float = _limit(5.0, "wall time, and processor time of each process")
    memory: int = _limit(512, "address space of each process, in MiB")
    processes: int = _limit(8, "processes and threads at a time")
    open_files: int = _limit(64, "open files of each process")
    file_size: int = _limit(16, "largest file, and all files together, in MiB")

    def check(self, place: str = "sandbox") -> None:
        """Raises ConfigError, with ``place``, where programs cannot be confined."""
        try:
            mode()
        except NotConfinedError as error:
            raise ConfigError([f"{place}: {error}"]) from error

    def run(self, source: str, stdin: str = "") -> Run:
        """Runs a Python program with the standard library alone. Raises NotConfinedError where it cannot be confined."""
        return self._run(source, stdin, mode())

    def _run(self, source: str, stdin: str, how: str) -> Run:
        task = {
            "mode": how,
            "source": source,
            "stdin": stdin,
            "seconds": self.seconds,
            "memory": self.memory * MEBIBYTE,
            "processes": self.processes,
            "open_files": self.open_files,
            "file_size": self.file_size * MEBIBYTE,
            "folder_size": self.file_size * MEBIBYTE,
            "python": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
            "prefix": os.path.realpath(sys.base_prefix),
            "filter": _filter(),
        }
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            outcome = _launched(json.dumps(task).encode(), self.seconds + GRACE, out, err)
            if "refused" in outcome:
                raise NotConfinedError(
                    f"programs cannot be confined here ({outcome['refused']}), so none is run; see docs/sandbox.md"
                )
            return Run(status=_status(outcome), stdout=_text(out), stderr=_text(err))


@lru_cache(maxsize=1)
def mode() -> str:
    """How programs are confined here, found out and tried once: ``user``, with a user namespace, or ``root``, as root without one.

    Raises NotConfinedError where neither holds.
    """
    if sys.platform != "linux":
        raise NotConfinedError(f"programs cannot be confined on {sys.platform}, only on Linux, so none is run; see docs/sandbox.md")
    reasons = []
    for how in ("user", "root") if os.geteuid() == 0 else ("user",):
        try:
            run = Sandbox(seconds=60.0)._run(_PROBE, "", how)
        except NotConfinedError as error:
            reasons.append(str(error))
            continue
        reached = _reached(run)
        if not reached:
            return how
        reasons.append(f"a program still reaches {', '.join(reached)}")
    raise NotConfinedError(reasons[0] if len(reasons) == 1 else f"{reasons[0]}; as root: {reasons[1]}")


def _filter() -> str:
    machine = os.uname().machine
    if machine not in MACHINES:
        raise NotConfinedError(f"programs cannot be confined on {machine} processors, so none is run; see docs/sandbox.md")
    return program(machine).hex()


def _reached(run: Run) -> list[str]:
    try:
        report = json.loads(run.stdout)
    except ValueError:
        return [f"its end too early ({run.status}: {run.stderr.strip()[-200:]})"]
    return [name for name, reached in report.items() if reached]


def _launched(task: bytes, limit: float, out: Any, err: Any) -> dict[str, Any]:
    """The launcher's report. It keeps the time limit itself; ``limit`` is for a launcher that hangs."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as report:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SCRIPT), str(write)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={},
                cwd="/",
                pass_fds=(write,),
                start_new_session=True,
            )
        finally:
            os.close(write)
        try:
            process.communicate(task, timeout=limit)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        text = report.read(1 << 16)
    if not text:
        err.seek(0)
        detail = err.read(2000).decode(errors="replace").strip().rpartition("\n")[2]
        return {"refused": detail or f"the launcher ended with status {process.returncode}"}
    return dict(json.loads(text))


def _status(outcome: dict[str, Any]) -> Status:
    if outcome.get("late"):
        return "time"
    code = outcome["code"]
    return "ok" if code == 0 else "killed" if code < 0 else "error"


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read(LONGEST_OUTPUT).decode(errors="replace"))
