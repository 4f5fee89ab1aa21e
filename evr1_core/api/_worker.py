"""The other side of :mod:`evr1_core.api.workers`: reads requests from standard input and answers on standard output."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import threading
import time

GRACE = 2.0  # seconds beyond the wall limit, which the owner keeps: for a worker whose owner is stopped
LOOKS = 0.5  # seconds between looks whether the owner is still there


def main(target: str, memory: str, time_limit: str, wall_limit: str, owner: str, first: str) -> None:
    """Serves until standard input ends. An exception of the function ends the process: the owner starts another."""
    threading.Thread(target=_end_with, args=(int(owner),), daemon=True).start()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever a library prints must not look like a reply
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    if first:
        function(**json.loads(first))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))

    def reply(value: object) -> None:
        replies.write(json.dumps(value).encode() + b"\n")
        replies.flush()

    def limit(processor: float, wall: float) -> None:
        # the signals are left at their default, which ends the process even inside C code
        signal.setitimer(signal.ITIMER_PROF, processor)
        signal.setitimer(signal.ITIMER_REAL, wall)

    reply({"ready": True})
    for line in sys.stdin.buffer:
        limit(float(time_limit), float(wall_limit) + GRACE)
        try:
            answer = {"value": function(**json.loads(line))}
        except MemoryError:
            answer = {"memory": True}
        limit(0, 0)
        reply(answer)


def _end_with(owner: int) -> None:
    """Ends this process when its owner has ended, however that was. Standard input alone would not tell: processes that were forked
    from the owner hold the other end of the pipe. A parent's death signal would come with the end of the thread that started this.
    """
    while os.getppid() == owner:
        time.sleep(LOOKS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
