"""Third-party distributions, really installed by pip, in a folder that a test puts on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

DISTS = Path(__file__).parent / "fixtures" / "dists"
NAMES = ("good", "broken", "clash", "old")


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one installation target for each distribution, under its name; shared by parallel workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "evr1-dists"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            for name, process in [(name, _install(name, folder)) for name in NAMES]:
                assert process.wait(100) == 0, f"{name} could not be installed"
            (folder / "done").touch()
    return folder


def _install(name: str, folder: Path) -> subprocess.Popen[bytes]:
    source = folder / "source" / name  # setuptools leaves its build folders in the source
    shutil.copytree(DISTS / name, source, dirs_exist_ok=True)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(folder / name)]
    return subprocess.Popen([sys.executable, "-m", "pip", "install", *options, str(source)], stdin=subprocess.DEVNULL)


@pytest.fixture
def install(sites: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes distributions importable and visible in this process, until the test is over."""
    before = set(sys.modules)

    def put(*names: str) -> None:
        for name in names:
            monkeypatch.syspath_prepend(str(sites / name))

    yield put
    for module in set(sys.modules) - before:
        if module.startswith("evr1_test_"):
            del sys.modules[module]


@pytest.fixture
def evr1(sites: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own: ``evr1("plugins", "--json", dists=["good"], EVR1_DISABLE="x")``."""

    def run(*words: str, dists: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(str(sites / name) for name in dists)
        env = {**os.environ, "PYTHONPATH": path, **environment}
        return subprocess.run([sys.executable, "-m", "evr1_core", *words], env=env, capture_output=True, text=True, timeout=60)

    return run
