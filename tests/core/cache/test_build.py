"""Filling the cache: once a key, in several processes, in the face of races and kills."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evr1_core.api import CacheError, Media
from evr1_core.cache.build import build
from evr1_core.cache.store import UNFINISHED, check, entries

NAMES = ("base.mp4", "vfr.mp4", "one_frame.mp4", "rot90.mp4", "odd7.mp4")
SIZES = ("frames.video_min_pixels=1024", "frames.video_max_pixels=65536")


def media(films: Path, *names: str) -> list[Media]:
    return [Media(kind="video", path=str(films / name)) for name in names]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in entries(folder)}


def test_each_key_once_and_a_report_of_failures(films, small):
    cache = small()
    results = list(build(cache, [*media(films, *NAMES, "html.mp4", "missing.mp4"), *media(films, *NAMES)], 2))
    assert len(results) == len(NAMES) + 2
    assert sorted(each.error.kind for each in results if each.error) == ["missing", "undecodable"]
    assert not any(each.present for each in results)
    assert len(entries(cache.folder)) == len(NAMES)
    again = list(build(cache, media(films, *NAMES), 2))
    assert all(each.present for each in again)
    entries(cache.folder)[0].write_bytes(b"damaged")
    assert sum(not each.present for each in build(cache, media(films, *NAMES), 2)) == 1


def test_an_incomplete_film_is_said_to_be_one(films, small, caplog):
    cache = small()
    for present in (False, True):
        (built,) = build(cache, media(films, "trunc_faststart.mp4"), 1)
        assert (built.present, built.readable) == (present, pytest.approx(50 / 120, abs=2.1 / 120))
    assert len(re.findall(r"only 4\d % of the promised frames", caplog.text)) == 1


def test_no_room_ends_the_build(films, small, monkeypatch):
    def full(media):
        raise CacheError("no room left")

    cache = small()
    monkeypatch.setattr(cache, "store", full)
    with pytest.raises(CacheError, match="no room"):
        list(build(cache, media(films, *NAMES), 2))


def command(films: Path, folder: Path, cache: Path, names=NAMES) -> list[str]:
    """The words of ``evr1 cache build`` over these files."""
    row = {"problem": "<video>?", "answer": "A", "problem_type": "multiple choice", "options": ["A. x", "B. y"]}
    rows = [{**row, "data_type": "video", "videos": [str(films / name)]} for name in names]
    (folder / "rows.json").write_text(json.dumps(rows))
    words = [sys.executable, "-m", "evr1_core", "cache", "build", str(folder / "rows.json"), "--grid", "16,2,2", "--workers", "2"]
    return [*words, *(word for size in (*SIZES, f"cache.folder={cache}") for word in ("--set", size))]


@pytest.mark.slow
def test_racing_builders_make_one_entry_a_key(films, tmp_path):
    words = command(films, tmp_path, tmp_path / "cache")
    builders = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(3)]
    for builder in builders:
        out, _ = builder.communicate()
        assert builder.returncode == 0, out.decode()
    assert len(entries(tmp_path / "cache")) == len(NAMES)
    assert [check(path) for path in entries(tmp_path / "cache")] == [None] * len(NAMES)
    assert not list((tmp_path / "cache").glob(f".*{UNFINISHED}"))


def children(pid: int) -> list[int]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(place.name))
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_moment(films, tmp_path):
    """The rest of the thirty kills is in benchmarks/media.py."""
    names = (*NAMES, "keys.mp4", "longgop.mp4", "open_gop.mp4")
    whole = tmp_path / "whole"
    subprocess.run(command(films, tmp_path, whole, names), check=True, capture_output=True)
    cache, draw = tmp_path / "cache", random.Random(0)
    for _ in range(6):
        builder = subprocess.Popen(command(films, tmp_path, cache, names), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(1.0, 5.0))
        for pid in [*children(builder.pid), builder.pid]:
            os.kill(pid, signal.SIGKILL)
        builder.wait()
        assert [check(path) for path in entries(cache)] == [None] * len(entries(cache))
    subprocess.run(command(films, tmp_path, cache, names), check=True, capture_output=True)
    assert digests(cache) == digests(whole)
    assert not list(cache.glob(f".*{UNFINISHED}"))
