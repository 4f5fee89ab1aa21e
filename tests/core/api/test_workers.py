"""Worker processes: results, limits, crashes, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evr1_core.api import Evr1Error
from evr1_core.api.workers import Failed, Workers

MODULE = """
import os, sys, time

def work(do="", value=None, seconds=0):
    if do == "sleep": time.sleep(seconds)
    if do == "spin":
        while True: pass
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
    pool = Workers("working:work", time_limit=2.0)
    yield pool
    pool.close()


@pytest.mark.parametrize("value", [1, 0.5, None, True, "é\n\ud83d", [1, [2]], {"a": "b"}, "x" * 200_000])
def test_values_come_back(pool: Workers, value: object) -> None:
    assert pool.ask({"value": value}) == value


def test_one_process_serves_many(pool: Workers) -> None:
    assert len({pool.ask({"do": "process"}) for _ in range(5)}) == 1
    assert pool.ask({"do": "process"}) != os.getpid()


@pytest.mark.parametrize("do", ["spin", "power", "sleep"])
def test_what_takes_too_long_is_killed_and_replaced(pool: Workers, do: str) -> None:
    before = pool.ask({"do": "process"})
    start = time.monotonic()
    assert pool.ask({"do": do, "seconds": 60}) == Failed("time", "no result within 2 s")
    assert time.monotonic() - start < 6.0
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert pool.ask({"value": 1}) == 1
    assert pool.ask({"do": "process"}) != before


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


def test_workers_end_with_their_owner(tmp_path: Path) -> None:
    (tmp_path / "working.py").write_text(MODULE)
    source = (
        f"import sys, time; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from evr1_core.api.workers import Workers\n"
        "pool = Workers('working:work', time_limit=2.0)\n"
        "print(pool.ask({'do': 'process'}), flush=True)\n"
        "pool.ask({'do': 'sleep', 'seconds': 1.5})\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    worker = int(owner.stdout.readline())
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    for _ in range(100):
        try:
            state = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the worker outlived its owner")
