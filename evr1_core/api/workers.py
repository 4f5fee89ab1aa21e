"""Worker processes for work on made-up input that may hang, crash or eat memory: killed at a time limit and replaced.

The limit is kept from outside, so it also holds inside C code and off the main thread. A worker gets no environment variables but
those that Python needs, and what it says comes back as JSON, never as pickled objects.
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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from attrs import frozen

from evr1_core.api.errors import Evr1Error

START_LIMIT = 120.0  # seconds until a new worker must have imported its module, on a busy machine
REPLACED_AFTER = 2000  # requests; caches of the libraries grow
LONGEST_REPLY = 1 << 20  # bytes
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "SYSTEMROOT")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@frozen
class Failed:
    """A request without a result: ``reason`` is ``time``, ``memory`` or ``crash``; ``detail`` for people."""

    reason: str
    detail: str


class Workers:
    """A pool of processes that call ``target`` (``module:function``) with keyword arguments that JSON can hold.

    Started at the first request. ``time_limit``: seconds for one request; ``memory``: bytes of address space of one worker;
    ``first``: arguments of a call that a new worker makes before its time counts. Threads may share a pool; a process that was
    forked from the owner starts its own workers.
    """

    def __init__(
        self, target: str, *, size: int = 1, time_limit: float, memory: int = 2 << 30, first: Mapping[str, Any] | None = None
    ) -> None:
        self.first = None if first is None else json.dumps(first)
        self.target, self.size, self.time_limit, self.memory = target, size, time_limit, memory
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._workers: set[_Worker] = set()
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
            answer, worker = self._asked(worker, json.dumps(arguments).encode() + b"\n")
        except BaseException:
            if worker is not None:
                self._drop(worker)
            slots.put(None)
            raise
        slots.put(worker)
        return answer

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
                for worker in tuple(self._workers):
                    self._drop(worker)
            self._reset()

    def __del__(self) -> None:
        with suppress(AttributeError, TypeError):  # half-built, or while the interpreter is going down
            self.close()

    def _asked(self, worker: _Worker | None, line: bytes) -> tuple[Any, _Worker | None]:
        if worker is None or worker.served >= REPLACED_AFTER or worker.ended():
            if worker is not None:
                self._drop(worker)
            worker = _Worker(self.target, self.time_limit, self.memory, self.first)
            self._workers.add(worker)
            worker.wait_until_ready()
        reply = worker.request(line)
        if isinstance(reply, Failed):
            self._drop(worker)
            return reply, None
        return (Failed("memory", "out of memory") if reply.get("memory") else reply["value"]), worker

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        self._workers.discard(worker)


class _Worker:
    """One process, with a pipe in and a pipe out."""

    def __init__(self, target: str, time_limit: float, memory: int, first: str | None) -> None:
        self.served, self.time_limit, self._pending = 0, time_limit, b""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evr1_core.api._worker", target, str(memory), str(time_limit), first or ""],
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
        return self._read(self.time_limit)

    def _read(self, limit: float) -> dict[str, Any] | Failed:
        """The next line of the worker, as JSON."""
        deadline = time.monotonic() + limit
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                return Failed("time", f"no result within {limit:g} s")
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
        self.kill_process()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return Failed("crash", lines[-1] if lines else f"the process ended with status {self.process.returncode}")

    def kill_process(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        self.kill_process()
        self._selector.close()
        for pipe in (self._in, self._out, self._errors):
            with suppress(OSError):  # what was not written any more
                pipe.close()
