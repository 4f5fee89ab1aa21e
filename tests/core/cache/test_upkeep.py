"""Making room: least recently used first, and never an entry that somebody uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evr1_core.cache.store import check, entries, save
from evr1_core.cache.upkeep import clean, listed, verify
from evr1_core.cache.uses import Uses, in_use, last_used, touch
from tests.core.cache.test_store import SOURCE, clip

KEYS = tuple(letter * 64 for letter in "abcd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four entries of the same size, the first used longest ago."""
    for age, key in enumerate(KEYS):
        path = save(tmp_path, key, clip(), SOURCE)
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    return tmp_path


def left(folder: Path) -> str:
    return "".join(path.stem[0] for path in entries(folder))


def test_the_least_recently_used_go_first(folder):
    size = entries(folder)[0].stat().st_size
    assert [entry.key[0] for entry in listed(folder)] == list("dcba")
    touch(folder / f"{KEYS[0]}.pt")
    done = clean(folder, 2 * size + 10)
    assert left(folder) == "ad"
    assert (done.removed, done.freed, done.left, done.busy) == (2, 2 * size, 2 * size, 0)


def test_nothing_goes_while_there_is_room(folder):
    assert clean(folder, 10**9).removed == 0
    assert left(folder) == "abcd"


def test_an_entry_in_use_stays(folder):
    uses = Uses(folder)
    uses.note(KEYS[1])
    done = clean(folder, 0)
    assert left(folder) == "b"
    assert (done.removed, done.busy) == (3, 1)
    del uses
    assert clean(folder, 0).removed == 1


def test_an_entry_in_use_by_another_process_stays_until_it_ends(folder):
    code = f"""
import sys
from pathlib import Path
from evr1_core.cache.uses import Uses
uses = Uses(Path({str(folder)!r}))
uses.note({KEYS[2]!r})
print("ready", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    assert in_use(folder) == {KEYS[2]}
    clean(folder, 0)
    assert left(folder) == "c"
    process.kill()  # and no farewell
    process.communicate()
    assert in_use(folder) == set()
    clean(folder, 0)
    assert left(folder) == ""


def test_using_an_entry_is_noted(folder):
    path = folder / f"{KEYS[0]}.pt"
    before = last_used(path)
    assert check(path) is None
    assert last_used(path) == before  # looking at it is no use
    touch(path)
    assert last_used(path) > before


def test_verify_and_list_show_damage(folder):
    (folder / f"{KEYS[3]}.pt").write_bytes(b"x")
    assert [(path.stem[0], problem is None) for path, problem in verify(folder)] == [
        ("a", True),
        ("b", True),
        ("c", True),
        ("d", False),
    ]
    assert [entry.key[0] for entry in listed(folder) if entry.problem] == ["d"]
