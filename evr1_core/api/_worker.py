"""The other side of :mod:`evr1_core.api.workers`: reads requests from standard input and answers on standard output."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys

GRACE = 2.0  # seconds beyond the limit, after which a worker whose owner is gone ends itself


def main(target: str, memory: str, time_limit: str, first: str) -> None:
    """Serves until standard input ends. An exception of the function ends the process: the owner starts another."""
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

    reply({"ready": True})
    for line in sys.stdin.buffer:
        # the signal is left at its default, which ends the process even inside C code; the owner is always faster
        signal.setitimer(signal.ITIMER_REAL, float(time_limit) + GRACE)
        try:
            answer = {"value": function(**json.loads(line))}
        except MemoryError:
            answer = {"memory": True}
        signal.setitimer(signal.ITIMER_REAL, 0)
        reply(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
