"""``evr1 cache`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evr1_core.cli.cache import _size
from evr1_core.cli.main import main

GRID = ("--grid", "16,2,2")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two pictures, one of them broken, and a film."""
    import av

    Image.fromarray(np.arange(64 * 96 * 3, dtype=np.uint8).reshape(64, 96, 3)).save(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with av.open(str(tmp_path / "film.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for number in range(20):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), 10 * number, np.uint8), format="rgb24")))
        container.mux(stream.encode())
    row = {"answer": "A", "problem_type": "multiple choice", "options": ["A. x", "B. y"]}
    content = [
        {**row, "problem": "<image>?", "images": ["good.png"]},
        {**row, "problem": "<image>?", "images": ["bad.png"]},
        {**row, "problem": "<video>?", "videos": ["film.mp4"]},
    ]
    (tmp_path / "rows.json").write_text(json.dumps(content))
    return tmp_path / "rows.json"


def test_build_list_verify_and_clean(rows, tmp_path, capsys):
    cache = ("--set", f"cache.folder={tmp_path / 'cache'}")
    assert main(["cache", "build", str(rows), *GRID, *cache, "--workers", "1"]) == 2
    out, err = capsys.readouterr()
    assert "2 files decoded, 0 were there, 1 cannot be used" in out
    assert "bad.png: no readable image" in err
    assert "1 files cannot be used: 1 undecodable" in err
    assert main(["cache", "build", str(rows), *GRID, *cache, "--workers", "1"]) == 2
    assert "0 files decoded, 2 were there" in capsys.readouterr().out

    assert main(["cache", "ls", *cache]) == 0
    out = capsys.readouterr().out
    assert "2 entries" in out
    assert "good.png" in out
    assert main(["cache", "verify", *cache]) == 0
    assert "2 entries, 0 damaged" in capsys.readouterr().out

    entry = next((tmp_path / "cache").glob("*.pt"))
    entry.write_bytes(b"x")
    assert main(["cache", "verify", *cache]) == 1
    assert str(entry) in capsys.readouterr().out
    assert main(["cache", "verify", "--remove", *cache]) == 0
    assert not entry.exists()
    assert main(["cache", "gc", "--max-size", "0", "--folder", str(tmp_path / "cache")]) == 0
    assert "1 entries removed" in capsys.readouterr().out
    assert not list((tmp_path / "cache").glob("*.pt"))


def test_plan_prints_frames_size_and_tokens(rows, tmp_path, capsys):
    sizes = ("--set", "frames.video_max_pixels=4096", "--set", f"cache.folder={tmp_path / 'cache'}")
    assert main(["cache", "plan", str(tmp_path / "film.mp4"), str(tmp_path / "good.png"), *GRID, *sizes]) == 0
    film, source, seconds, picture = capsys.readouterr().out.splitlines()
    assert film.endswith("film.mp4: 4 frames of 64 x 64, 8 tokens")
    assert source.strip() == "source: 20 frames of 64 x 64, 2.000 s, 10.000 frames/s"
    assert seconds.strip() == "seconds: 0.00, 0.60, 1.30, 1.90"
    assert picture.endswith("good.png: 1 frames of 96 x 64, 6 tokens")
    assert main(["cache", "plan", str(tmp_path / "bad.png"), *GRID, *sizes]) == 2
    assert "no readable image" in capsys.readouterr().err


@pytest.mark.parametrize("grid", ["16,2", "a,b,c", "16,0,2"])
def test_a_grid_must_be_three_numbers(tmp_path, capsys, grid):
    assert main(["cache", "plan", str(tmp_path / "x.mp4"), "--grid", grid]) == 2
    assert "--grid" in capsys.readouterr().err


def test_without_model_and_grid(tmp_path, capsys):
    assert main(["cache", "plan", str(tmp_path / "x.mp4")]) == 2
    assert "model.path: must be given, or --grid" in capsys.readouterr().err


def test_limits_that_contradict(tmp_path, capsys):
    words = ["--set", "frames.video_min_pixels=9999", "--set", "frames.video_max_pixels=4096"]
    assert main(["cache", "plan", str(tmp_path / "x.mp4"), *GRID, *words]) == 2
    assert "is above" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("500", 500), ("2K", 2048), ("1.5G", 3 << 29), ("1TiB", 1 << 40), ("3 M", None)]
)
def test_sizes(text, size):
    import argparse

    if size is None:
        with pytest.raises(argparse.ArgumentTypeError):
            _size(text)
    else:
        assert _size(text) == size
