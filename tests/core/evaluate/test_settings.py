"""Protocols, files, --set and flags, and what benchmarks say of themselves."""

from __future__ import annotations

from typing import ClassVar

import pytest
from attrs import define

from evr1_core.api import Benchmark, ConfigError, PatchGrid
from evr1_core.evaluate.settings import load_settings

GRID = PatchGrid(patch=16, merge=2, temporal=2)


@define(kw_only=True)
class Slow(Benchmark):
    """Wants more frames under one preset."""

    api = 1
    id = "slow"
    title = "Slow"
    size = 1
    protocols: ClassVar = {"qwen3_vl": {"fps": 4.0, "frame_tokens": 768}}


def config(protocol=None, *sets, benchmark=None, **flags):
    return load_settings(protocol, sets, flags, "qwen3_vl").config(benchmark, GRID)


def test_presets():
    qwen3 = config()
    assert (qwen3.protocol, qwen3.frames.video_max_frames, qwen3.frames.video_max_pixels) == ("qwen3_vl", 2048, 640 * 32 * 32)
    assert (qwen3.decoding.temperature, qwen3.prompt.form, qwen3.engine.name) == (0.0, "direct", "hf")
    assert config("ref").frames.video_total_pixels == 33_554_432
    assert config("qwen2_5_vl").frames.video_max_pixels == 768 * 28 * 28


def test_a_file_names_a_preset_and_set_wins(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("protocol: ref\nframes: {video_max_frames: 64}\ndecoding: {temperature: 0.7, seed: 3407}\n")
    found = config(str(file), "frames.video_fps=1", data="root")
    assert (found.protocol, found.data) == ("ref", "root")
    assert (found.frames.video_max_frames, found.frames.video_fps, found.frames.video_max_pixels) == (64, 1.0, 262_144)
    assert (found.sampling(5).temperature, found.sampling(5).seed) == (0.7, 5)
    assert config().sampling(5).seed is None


def test_a_benchmark_departs_from_the_preset_that_says_so():
    own = config(benchmark=Slow())
    assert (own.frames.video_fps, own.frames.video_max_pixels) == (4.0, 768 * 32 * 32)
    assert config("ref", benchmark=Slow()).frames.video_fps == 2.0
    assert config(None, "frames.video_fps=1", benchmark=Slow()).frames.video_fps == 1.0  # what was asked for wins


def test_benchmarks_keep_the_options_that_are_set(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("benchmarks:\n  a: {size: 3}\n  b: {}\n")
    assert config(str(file), benchmarks=["a", "c"]).benchmarks == {"a": {"size": 3}, "c": {}}
    assert config(None, "benchmarks.a.size=3", benchmarks=["a"]).benchmarks == {"a": {"size": 3}}


@pytest.mark.parametrize(
    ("protocol", "sets", "problem"),
    [
        ("reff", (), r"--protocol: no preset 'reff'; did you mean 'ref'\? \(known: qwen3_vl, qwen2_5_vl, ref\)"),
        ("none.yaml", (), r"none\.yaml: cannot be read"),
        (None, ("frames.video_fpss=1",), r"unknown key frames\.video_fpss; did you mean frames\.video_fps"),
        (None, ("decoding.temperature=-1",), r"decoding\.temperature"),
    ],
)
def test_bad_settings(protocol, sets, problem):
    with pytest.raises(ConfigError, match=problem):
        config(protocol, *sets)


def test_unknown_words_of_a_benchmark():
    @define(kw_only=True)
    class Odd(Slow):
        """Says a word that nobody knows."""

        api = 1
        protocols: ClassVar = {"ref": {"speed": 2}}

    with pytest.raises(ConfigError, match="slow: unknown 'speed' in protocols; known: fps, frames"):
        config("ref", benchmark=Odd())
