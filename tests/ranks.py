"""Starts several processes of one run, as torchrun would, and ends them when they hang."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_ranks(size: int, words: Sequence[str], *, timeout: float, **environment: str) -> list[str]:
    """Runs ``python WORDS`` in ``size`` processes. Returns what each has written; fails when one does, or when time is up."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    env |= {"WORLD_SIZE": str(size), **environment}
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{rank}.txt" for rank in range(size)]
        processes = []
        for rank, output in enumerate(outputs):
            own = env | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            with output.open("w") as file:
                processes.append(
                    subprocess.Popen([sys.executable, *words], cwd=ROOT, env=own, stdout=file, stderr=subprocess.STDOUT)
                )
        try:
            _wait(processes, time.monotonic() + timeout)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        texts = [output.read_text() for output in outputs]
    codes = [process.returncode for process in processes]
    assert codes == [0] * size, f"exit statuses {codes} (-9: hung, or another failed)\n" + "\n---\n".join(
        text[-4000:] for text in texts
    )
    return texts


def _wait(processes: Sequence[subprocess.Popen[bytes]], until: float) -> None:
    """Until all have ended, one has failed, or time is up."""
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        if any(process.returncode for process in processes):
            return
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]
