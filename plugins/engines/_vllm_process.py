"""The process that vLLM runs in, seen from the trainer: started, asked, ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from typing import Any

from evr1_core.api import EngineError, ModelError

SERVER = "evr1_plugins.engines._vllm_server"
TAIL = 4000  # characters of what vLLM wrote, shown with an error
PATIENCE = 20  # seconds in which it may end by itself
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}

PLACES = ("", "LOCAL_", "GROUP_", "ROLE_")
GROUP = {f"{place}{what}" for place in PLACES for what in ("RANK", "WORLD_SIZE")} | {"MASTER_ADDR", "MASTER_PORT"}


class GoneError(Exception):
    """The process has ended, or its engine has died."""


class Process:
    """vLLM's process. Calls may run side by side, on one event loop at a time."""

    def __init__(self, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._pipe, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # as long as this object
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = {}
        self._count = 0
        self.gone = False
        self._listener: threading.Thread | None = None
        self._child = subprocess.Popen(
            [sys.executable, "-m", SERVER, str(theirs.fileno())],
            env={**ENVIRONMENT, **_own(os.environ), **environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # so that Ctrl-C does not reach it, and it can be ended with all of its own
        )
        theirs.close()
        self._end = weakref.finalize(self, _end, self._child)  # also called when the interpreter ends
        self._pipe.send(settings)

    async def started(self, limit: float) -> dict[str, Any]:
        """What the engine says of itself. Raises EngineError when it has not started within ``limit`` seconds."""
        ready = await asyncio.to_thread(self._pipe.poll, limit)
        try:
            if ready:
                _, _, facts = self._pipe.recv()
                self._listener = threading.Thread(target=self._listen, daemon=True)
                self._listener.start()
                return facts
        except (EOFError, OSError):
            ready = True
        self.close()
        what = "could not be started" if ready else f"did not start within {limit:g} s (start_limit)"
        raise EngineError(f"rollout.engine: vLLM {what}; it wrote:\n{self.tail()}")

    async def call(self, kind: str, *arguments: Any) -> Any:
        """The answer. Raises GoneError, ModelError when vLLM refuses what was asked, EngineError when it fails at it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        await asyncio.to_thread(self._send, loop, future, kind, arguments)
        status, value = await future
        if status == "refused":
            raise ModelError(f"vLLM refuses a request: {value}")
        if status == "failed":
            raise EngineError(f"rollout.engine: vLLM has failed to {kind}: {value}; it wrote:\n{self.tail()}")
        return value

    def tail(self) -> str:
        """The end of what vLLM has written."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()[-TAIL:]

    @property
    def pid(self) -> int:
        """Of the process that holds the engine; its children are in the same process group."""
        return self._child.pid

    def close(self) -> None:
        """Ends the process and all that it has started."""
        if self._lock.acquire(timeout=1.0):  # a message may be stuck in the pipe
            with suppress(OSError):
                self._pipe.send(None)
            self._lock.release()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(PATIENCE)
        self.gone = True
        self._end()
        if self._listener is not None:
            self._listener.join()  # the pipe has ended
        self._pipe.close()

    def _send(self, loop: Any, future: asyncio.Future[Any], kind: str, arguments: Any) -> None:
        with self._lock:
            if self.gone:
                raise GoneError
            self._count += 1
            self._waiting[self._count] = (loop, future)
            try:
                self._pipe.send((self._count, kind, arguments))
            except OSError as error:
                raise GoneError from error

    def _listen(self) -> None:
        while True:
            try:
                number, status, value = self._pipe.recv()
            except (EOFError, OSError):
                break
            if status == "dead":
                break
            loop, future = self._waiting.pop(number)
            loop.call_soon_threadsafe(_settle, future, (status, value))
        self.gone = True
        for loop, future in list(self._waiting.values()):
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_fail, future)
        self._waiting.clear()


def _own(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what torchrun tells the trainer's processes of each other: vLLM makes groups of its own."""
    return {name: value for name, value in environment.items() if name not in GROUP and not name.startswith("TORCHELASTIC_")}


def _settle(future: asyncio.Future[Any], answer: tuple[str, Any]) -> None:
    if not future.done():
        future.set_result(answer)


def _fail(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(GoneError())


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the process group: kindly at first, so that shared memory is given back."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
        for _ in range(10 * PATIENCE):
            child.poll()
            os.killpg(child.pid, 0)  # ends the loop when nobody is left
            time.sleep(0.1)
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
