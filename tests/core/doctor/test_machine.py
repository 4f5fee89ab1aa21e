import resource
from pathlib import Path

import pytest

from evr1_core.api.sandbox import NotConfinedError
from evr1_core.doctor import machine

GIB = 1 << 30


@pytest.mark.parametrize(("free", "level"), [(GIB // 2, "stop"), (4 * GIB, "note"), (64 * GIB, "ok")])
def test_memory(free, level):
    assert machine.memory(free).level == level
    assert machine.memory(64 * GIB).value == "64.0 GiB free"


def test_memory_of_the_machine_and_of_its_container(tmp_path):
    meminfo = tmp_path / "meminfo"
    assert machine.available(meminfo, tmp_path) is None
    assert machine.memory(None).level == "ok"
    meminfo.write_text("MemTotal:  16384 kB\nMemAvailable:  8192 kB\n")
    assert machine.available(meminfo, tmp_path) == 8192 << 10
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available(meminfo, tmp_path) == 8192 << 10
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("3000000\n")
    (tmp_path / "memory.stat").write_text("anon 2000000\ninactive_file 500000\n")
    assert machine.available(meminfo, tmp_path) == 2_500_000
    assert machine.available(Path("/proc/meminfo"), tmp_path / "none") > 0


def test_disk_of_a_folder_that_is_not_there_yet(tmp_path, monkeypatch):
    usage = []
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage.append(path) or type("Usage", (), {"free": 3 * GIB}))
    row = machine.disk("cache", tmp_path / "a" / "b")
    assert (row.level, row.value) == ("note", f"{tmp_path}/a/b: 3.0 GiB free")
    assert usage == [tmp_path]


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.os, "access", lambda path, mode: path != tmp_path)  # root may write everywhere
    row = machine.disk("cache", tmp_path / "cache")
    assert (row.level, row.value) == ("stop", f"{tmp_path}/cache: {tmp_path} cannot be written to")


@pytest.mark.parametrize(
    ("soft", "hard", "level", "advice"),
    [
        (64, 4096, "stop", "ulimit -n 4096"),
        (512, resource.RLIM_INFINITY, "note", "ulimit -n 65536"),
        (1024, 4096, "ok", "ulimit -n 4096"),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, "ok", ""),
    ],
)
def test_open_files(soft, hard, level, advice):
    row = machine.open_files(soft, hard)
    assert (row.level, row.advice) == (level, advice)


def test_shared_memory_matters_to_vllm_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: type("Usage", (), {"free": GIB // 16}))
    for shared, level in ((False, "ok"), (True, "note")):
        (row,) = [each for each in machine.machine({}, shared) if each.name == "shared memory"]
        assert (row.level, row.value) == (level, "/dev/shm: 0.1 GiB free")


def test_how_programs_are_confined(monkeypatch):
    for how, value in (("user", "confined, in a user namespace"), ("root", "confined by root, without a user namespace")):
        monkeypatch.setattr(machine, "mode", lambda how=how: how)
        assert machine.sandbox().value.startswith(f"{value}; Landlock on top: ")

    def refused():
        raise NotConfinedError("programs cannot be confined here (unshare), so none is run")

    monkeypatch.setattr(machine, "mode", refused)
    row = machine.sandbox()
    assert (row.level, row.value) == ("note", "programs cannot be confined here (unshare), so none is run")
