"""Worker processes for work on made-up input that may hang, crash or eat memory: killed at a time limit and replaced.

The limit counts processor time, so that a busy machine does not change results; wall time is limited more generously. Both hold
inside C code and off the main thread. A worker gets no environment variables but those that Python needs, what it says comes back
as JSON, never as pickled objects, and none outlives the process that started it.
"""

from __future__ import annotations

import json
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from attrs import frozen

from evr1_core.api.errors import Evr1Error

START_LIMIT = 120.0  # seconds until a new worker must have imported its module, on a busy machine
REPLACED_AFTER = 2000  # requests; caches of the libraries grow
LONGEST_REPLY = 1 << 20  # bytes
PATIENCE = 10  # wall time limit over that of processor time
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "SYSTEMROOT")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@frozen
class Failed:
    """A request without a result. ``reason``: ``time`` (the limit of processor time), ``stalled`` (that of wall time, on a machine
    that is too busy or for a worker that waits), ``memory`` or ``crash``; ``detail`` for people.
    """

    reason: str
    detail: str


class Workers:
    """A pool of processes that call ``target`` (``module:function``) with keyword arguments that JSON can hold.

    Started at the first request. ``time_limit``: seconds of processor time for one request, 0 for any; ``wall_limit``: seconds in
    all, ten times as many by default; ``memory``: bytes of address space of one worker; ``first``: arguments of a call that a new
    worker makes before its time counts. Threads may share a pool; a process that was forked from the owner starts its own workers.
    """

    def __init__(
        self,
        target: str,
        *,
        size: int = 1,
        time_limit: float,
        wall_limit: float | None = None,
        memory: int = 2 << 30,
        first: Mapping[str, Any] | None = None,
    ) -> None:
        self.limits = _Limits(time_limit, PATIENCE * time_limit if wall_limit is None else wall_limit, memory)
        self.target, self.size = target, size
        self.first = "" if first is None else json.dumps(first)
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._reset()
        weakref.finalize(self, _end_all, self._workers)  # also called when the interpreter ends

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._workers.clear()
        self._slots: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        for _ in range(self.size):
            self._slots.put(None)

    def ask(self, arguments: Mapping[str, Any]) -> Any:
        """What the function returned, or :class:`Failed`. Raises Evr1Error when a worker cannot be started."""
        with self._lock:
            if self._owner != os.getpid():
                self._reset()
            slots = self._slots
        worker = slots.get()
        try:
            worker = self._ready(worker)
            reply = worker.request(json.dumps(arguments).encode() + b"\n")
        except BaseException:
            self._drop(worker)
            slots.put(None)
            raise
        if isinstance(reply, Failed):
            self._drop(worker)
            slots.put(None)
            return reply
        slots.put(worker)
        return Failed("memory", "out of memory") if reply.get("memory") else reply["value"]

    def ask_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Any]:
        """One result each, in order; as many at a time as there are workers."""
        if self.size == 1 or len(requests) < 2:
            return [self.ask(arguments) for arguments in requests]
        with ThreadPoolExecutor(min(self.size, len(requests))) as threads:
            return list(threads.map(self.ask, requests))

    def close(self) -> None:
        """Ends all workers. The pool can be used again and then starts new ones."""
        with self._lock:
            if self._owner == os.getpid():
                _end_all(self._workers)
            self._reset()

    def _ready(self, worker: _Worker | None) -> _Worker:
        """The worker, or a new one in the place of one that is missing, ended or old."""
        if worker is not None and worker.served < REPLACED_AFTER and not worker.ended():
            return worker
        self._drop(worker)
        worker = _Worker(self.target, self.limits, self.first)
        self._workers.add(worker)
        try:
            worker.wait_until_ready()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _drop(self, worker: _Worker | None) -> None:
        if worker is not None:
            worker.kill()
            self._workers.discard(worker)


def _end_all(workers: set[_Worker]) -> None:
    """Ends workers, unless they belong to the process that this one was forked from."""
    while workers:
        worker = workers.pop()
        if worker.owner == os.getpid():
            worker.kill()


@frozen
class _Limits:
    time: float
    wall: float
    memory: int


class _Worker:
    """One process, with a pipe in and a pipe out."""

    def __init__(self, target: str, limits: _Limits, first: str) -> None:
        self.owner, self.served, self.limits, self._pending = os.getpid(), 0, limits, b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
        numbers = map(str, (limits.memory, limits.time, limits.wall, self.owner))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evr1_core.api._worker", target, *numbers, first],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_ready(self) -> None:
        reply = self._read(START_LIMIT)
        if isinstance(reply, Failed):
            raise Evr1Error(f"a worker process could not be started: {reply.detail}")

    def request(self, line: bytes) -> dict[str, Any] | Failed:
        self.served += 1
        try:
            self._in.write(line)
            self._in.flush()
        except OSError:
            return self._crash()
        return self._read(self.limits.wall)

    def _read(self, limit: float) -> dict[str, Any] | Failed:
        """The next line of the worker, as JSON."""
        deadline = time.monotonic() + limit
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                return Failed("stalled", f"no result within {limit:g} s")
            part = os.read(self._out.fileno(), 1 << 16)
            self._pending += part
            if not part or len(self._pending) > LONGEST_REPLY:
                return self._crash()
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            return self._crash()
        return reply if isinstance(reply, dict) else self._crash()

    def _crash(self) -> Failed:
        status = self.kill_process()
        if status == -signal.SIGPROF:
            return Failed("time", f"no result within {self.limits.time:g} s of processor time")
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return Failed("crash", lines[-1] if lines else f"the process ended with status {status}")

    def kill_process(self) -> int:
        """Ends the process; what it started goes with it. Its exit status, of an end before that where there was one."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def kill(self) -> None:
        self.kill_process()
        self._selector.close()
        for pipe in (self._in, self._out, self._errors):
            with suppress(OSError):  # what was not written any more
                pipe.close()
