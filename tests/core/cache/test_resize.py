"""Pixels against the published path: qwen-vl-utils 0.0.14, which models were trained with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import evr1_core  # noqa: F401 - lets torchvision import beside a CPU torch
from evr1_core.api import MediaError
from evr1_core.cache import decode
from evr1_core.cache.images import load_image
from evr1_core.cache.plan import fit, frame_limits, num_frames, video_size
from evr1_core.cache.resize import Converter, resized
from evr1_core.cache.scan import scan
from evr1_core.config.schema import FramesConfig
from tests.core.cache.conftest import GRID

published = pytest.importorskip("qwen_vl_utils.vision_process", reason="the published utility is not installed")
CLIPS = ("bikes", "bigbuckbunny", "carphone_pristine")


@pytest.fixture(scope="module")
def full_size(footage):
    """Some frames of each real clip, ``[T, 3, H, W]``, at their own size."""

    def read(name: str) -> torch.Tensor:
        stream = scan(str(footage[name]))
        convert = Converter(stream.height, stream.width, stream.turn)
        return torch.stack([convert(frame) for _, frame in decode.frames(str(footage[name]), stream, range(0, 120, 17))])

    return read


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("pixels", [65_536, 262_144])
def test_real_frames_differ_by_less_than_one_level(full_size, monkeypatch, name, pixels):
    frames = full_size(name)
    meta = {"fps": 25.0, "frames_indices": list(range(len(frames))), "total_num_frames": len(frames)}
    monkeypatch.setitem(published.VIDEO_READER_BACKENDS, "torchvision", lambda ele: (frames, meta, 2.0))
    monkeypatch.setattr(published, "get_video_reader_backend", lambda: "torchvision")
    limits = {"min_pixels": 32_768, "max_pixels": pixels}
    expected = published.fetch_video({"video": "x.mp4", **limits}, image_patch_size=16)
    config = FramesConfig(video_min_pixels=32_768, video_max_pixels=pixels)
    size = video_size(*frames.shape[2:], len(frames), config, GRID, "x")
    assert size == tuple(expected.shape[2:])
    own = torch.stack([resized(frame, *size) for frame in frames])
    error = (own.float() - expected).abs()
    assert float(error.mean()) <= 1.0
    assert float(error.max()) <= 4.0  # two roundings where a small picture is made larger


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK"])
def test_images_are_the_same(footage, full_size, tmp_path, mode):
    picture = Image.fromarray(full_size("bikes")[3].permute(1, 2, 0).numpy())
    if mode == "RGBA":
        picture.putalpha(Image.linear_gradient("L").resize(picture.size))
    path = tmp_path / ("x.tif" if mode == "CMYK" else "x.png")
    picture.convert(mode).save(path)
    expected = np.array(published.fetch_image({"image": str(path), "max_pixels": 65_536}, image_patch_size=16))
    own, source = load_image(str(path), lambda height, width: fit(height, width, 4096, 65_536, 32, "x"))
    assert source == (272, 640)
    assert torch.equal(own[0].permute(1, 2, 0), torch.from_numpy(expected))


def test_a_broken_image(tmp_path: Path):
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    with pytest.raises(MediaError, match="no readable image"):
        load_image(str(tmp_path / "x.png"), lambda height, width: (height, width))


@pytest.mark.parametrize("total", [30, 119, 120, 239, 500, 9000, 90_000])
@pytest.mark.parametrize("rate", [24, 25.0, 29.97, 30.0, 60.0, 240.0])
@pytest.mark.parametrize("fps", [0.5, 1.0, 2.0, 4.0])
def test_numbers_of_frames(total, rate, fps):
    expected = published.smart_nframes({"fps": fps, "max_frames": min(256, total)}, total_frames=total, video_fps=rate)
    assert num_frames(total / rate, total, FramesConfig(video_fps=fps)) == expected


@pytest.mark.parametrize("height", [16, 100, 240, 480, 720, 1080, 2160, 1919])
@pytest.mark.parametrize("width", [16, 99, 640, 1280, 1921, 3200])
@pytest.mark.parametrize("pixels", [131_072, 262_144, 655_360])
@pytest.mark.parametrize("count", [4, 256, 2048])
def test_sizes(height, width, pixels, count):
    config = FramesConfig(video_max_pixels=pixels)
    least, most = frame_limits(count, config, GRID)
    cap = max(min(768 * 1024, 33_554_432 / count * 2), int(131_072 * 1.05))
    assert most == int(min(pixels, cap))
    expected = published.smart_resize(height, width, 32, min_pixels=least, max_pixels=min(pixels, cap))
    assert video_size(height, width, count, config, GRID, "x") == expected
