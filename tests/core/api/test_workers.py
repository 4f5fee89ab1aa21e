"""Worker processes: results, limits, crashes, and nothing left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evr1_core.api import Evr1Error, workers
from evr1_core.api.workers import Failed, Workers

MODULE = """
import os, sys, time

def work(do="", value=None, seconds=0):
    start = time.process_time()
    if do == "sleep": time.sleep(seconds)
    if do == "spin":
        while True: pass
    if do == "spin for":
        while time.process_time() < seconds + start: pass
    if do == "power": 9 ** 9 ** 9
    if do == "eat": bytearray(8 << 30)
    if do == "raise": raise LookupError("no such thing")
    if do == "die": os._exit(7)
    if do == "print": print('{"value": "forged"}', flush=True)
    if do == "flood": return "x" * (4 << 20)
    if do == "environment": return sorted(os.environ)
    if do == "process": return os.getpid()
    return value
"""


@pytest.fixture(name="pool")
def _pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    (tmp_path / "working.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = Workers("working:work", time_limit=1.0, wall_limit=3.0)
    yield pool
    pool.close()


@pytest.mark.parametrize("value", [1, 0.5, None, True, "é\n\ud83d", [1, [2]], {"a": "b"}, "x" * 200_000])
def test_values_come_back(pool: Workers, value: object) -> None:
    assert pool.ask({"value": value}) == value


def test_one_process_serves_many(pool: Workers) -> None:
    assert len({pool.ask({"do": "process"}) for _ in range(5)}) == 1
    assert pool.ask({"do": "process"}) != os.getpid()


@pytest.mark.parametrize(
    ("do", "failed"),
    [
        ("spin", Failed("time", "no result within 1 s of processor time")),
        ("power", Failed("time", "no result within 1 s of processor time")),
        ("sleep", Failed("stalled", "no result within 3 s")),
    ],
)
def test_what_takes_too_long_is_killed_and_replaced(pool: Workers, do: str, failed: Failed) -> None:
    pool = Workers("working:work", time_limit=1.0, wall_limit=3.0 if do == "sleep" else 60.0)
    before = pool.ask({"do": "process"})
    start = time.monotonic()
    assert pool.ask({"do": do, "seconds": 60}) == failed
    assert do != "sleep" or time.monotonic() - start < 6.0
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert pool.ask({"value": 1}) == 1
    assert pool.ask({"do": "process"}) != before
    pool.close()


def test_a_busy_machine_does_not_change_results(pool: Workers) -> None:
    pool = Workers("working:work", time_limit=0.5)
    pool.ask({})
    with stopped_soon(pool.ask({"do": "process"}), seconds=1.5):
        assert pool.ask({"do": "spin for", "seconds": 0.3, "value": 1}) == 1
    pool.close()


@contextmanager
def stopped_soon(process: int, seconds: float) -> Iterator[None]:
    """Stops a process for ``seconds``, as one is on a machine that serves others."""
    os.kill(process, signal.SIGSTOP)
    thread = threading.Timer(seconds, os.kill, (process, signal.SIGCONT))
    thread.start()
    yield
    thread.join()


def test_memory_is_limited(pool: Workers) -> None:
    assert pool.ask({"do": "eat"}) == Failed("memory", "out of memory")
    assert pool.ask({"value": 1}) == 1


@pytest.mark.parametrize(
    ("do", "detail"),
    [("raise", "LookupError: no such thing"), ("die", "the process ended with status 7"), ("flood", "the process ended")],
)
def test_crashes_are_told(pool: Workers, do: str, detail: str) -> None:
    failed = pool.ask({"do": do})
    assert isinstance(failed, Failed)
    assert failed.reason == "crash"
    assert failed.detail.startswith(detail)
    assert pool.ask({"value": 1}) == 1


def test_prints_are_no_replies(pool: Workers) -> None:
    assert pool.ask({"do": "print", "value": "true"}) == "true"


def test_environment_holds_no_secrets(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "sesame")
    assert "SECRET_KEY" not in pool.ask({"do": "environment"})


def test_off_the_main_thread_and_many_at_a_time(pool: Workers) -> None:
    pool = Workers("working:work", size=2, time_limit=5.0)
    found: list[list[object]] = []
    thread = threading.Thread(target=lambda: found.append(pool.ask_all([{"value": number} for number in range(40)])))
    thread.start()
    thread.join()
    pool.close()
    assert found == [list(range(40))]


def test_one_failure_leaves_the_others(pool: Workers) -> None:
    assert pool.ask_all([{"value": 1}, {"do": "die"}, {"value": 3}])[::2] == [1, 3]


def test_first_call_has_no_limit(pool: Workers) -> None:
    pool = Workers("working:work", time_limit=1.0, first={"do": "sleep", "seconds": 1.5})
    assert pool.ask({"value": 1}) == 1
    pool.close()


@pytest.mark.parametrize("target", ["no_such_module:work", "working:nothing"])
def test_one_that_cannot_start_is_an_error(pool: Workers, target: str) -> None:
    broken = Workers(target, time_limit=1.0)
    with pytest.raises(Evr1Error, match=r"could not be started: .*(no_such_module|nothing)"):
        broken.ask({})
    with pytest.raises(Evr1Error):  # and the second call does not hang
        broken.ask({})


def test_close_ends_all_and_lets_begin_again(pool: Workers) -> None:
    process = pool.ask({"do": "process"})
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert pool.ask({"value": 1}) == 1


OWNER = """
import os, sys, time
sys.path.insert(0, {folder!r})
from evr1_core.api.workers import Workers
pool = Workers("working:work", size=2, time_limit=60.0)
print(pool.ask({{"do": "process"}}), flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("then", "killed"),
    [
        ("time.sleep(60)", True),
        ("pool.ask({'do': 'sleep', 'seconds': 60})", True),
        ("pool.ask({'do': 'spin'})", True),
        ("if os.fork() == 0: time.sleep(15); os._exit(0)\ntime.sleep(60)", True),  # which keeps the pipes open
        ("pass", False),
        ("raise SystemExit(3)", False),
        ("kept = [pool]; kept.append(kept)", False),
        ("if os.fork() == 0: os._exit(0)\nos.wait(); assert pool.ask({'value': 1}) == 1", False),
        ("if os.fork() == 0: sys.exit()\nos.wait(); assert pool.ask({'value': 1}) == 1", False),
    ],
)
def test_workers_end_with_their_owner(tmp_path: Path, then: str, killed: bool) -> None:
    (tmp_path / "working.py").write_text(MODULE)
    source = OWNER.format(folder=str(tmp_path), then=then)
    owner = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    worker = int(owner.stdout.readline())
    if killed:
        time.sleep(0.3)
        os.kill(owner.pid, signal.SIGKILL)
    assert owner.wait(30) == (-signal.SIGKILL if killed else 3 if "Exit" in then else 0)
    owner.stdout.close()
    assert ends(worker, seconds=10), "the worker outlived its owner"


def test_a_pool_that_nobody_holds_ends(pool: Workers) -> None:
    pool = Workers("working:work", time_limit=1.0)
    process = pool.ask({"do": "process"})
    del pool
    gc.collect()
    assert ends(process, seconds=1)


def test_one_that_starts_too_slowly_is_not_left_behind(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_LIMIT", 0.001)
    slow = Workers("working:work", time_limit=1.0)
    with pytest.raises(Evr1Error, match="could not be started: no result within"):
        slow.ask({})
    assert not slow._workers


def ends(process: int, seconds: float) -> bool:
    """Whether a process is gone, or a zombie, within ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
