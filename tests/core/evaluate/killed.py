"""Run by a test: an evaluation that is killed again and again, in processes forked after the imports."""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import evr1_core.evaluate.run  # noqa: F401  (imports what takes seconds)
from evr1_core.cli.main import main


def attempt(words: list[str], seconds: float | None) -> int:
    """The exit status of the command in a child; killed after so many seconds, -9."""
    child = os.fork()
    if child == 0:
        os._exit(main(words))
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    kills, seconds, *words = sys.argv[1:]  # seconds that an undisturbed run takes here and now
    generator = random.Random(0)
    found = [attempt(words, float(seconds) * generator.uniform(0.1, 0.5)) for _ in range(int(kills))]
    start = time.monotonic()
    print(found.count(-signal.SIGKILL), attempt(words, None), time.monotonic() - start)
