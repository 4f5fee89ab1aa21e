"""Small films whose every fact is known: coloured shapes that appear, move in one direction and vanish."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

# All brighter than the background: that something is there can be seen before its colour is understood.
COLOURS = {"red": (250, 80, 80), "green": (80, 240, 90), "blue": (90, 110, 255), "yellow": (230, 220, 60)}
DIRECTIONS = ("left", "right")
COUNTS = ("1", "2", "3")
RADIUS = 0.13  # of a shape, as a share of the side of a frame: three in their lanes do not touch
SIZES = ((64, 64), (80, 80), (96, 96), (112, 112))  # width, height
RATES = (6, 8, 10)  # frames a second
LENGTHS = (4, 5, 6)  # seconds
NOISE = 12.0  # standard deviation of the pixel noise, of 255


@frozen(kw_only=True)
class Scene:
    """What a film shows. ``start`` and ``end`` are whole seconds; the shapes are seen in ``[start, end)``."""

    colour: str
    direction: str
    count: int
    round_shapes: bool
    start: int
    end: int
    length: int
    fps: int
    width: int
    height: int
    seed: int


def random_scene(generator: np.random.Generator) -> Scene:
    """A scene with every fact drawn independently, but for the span, which lies within the film."""
    length = int(generator.choice(LENGTHS))
    visible = int(generator.integers(2, 5))
    start = int(generator.integers(0, length - visible + 1))
    width, height = SIZES[generator.integers(len(SIZES))]
    return Scene(
        colour=str(generator.choice(list(COLOURS))),
        direction=str(generator.choice(DIRECTIONS)),
        count=int(generator.integers(1, len(COUNTS) + 1)),
        round_shapes=bool(generator.integers(2)),
        start=start,
        end=start + visible,
        length=length,
        fps=int(generator.choice(RATES)),
        width=width,
        height=height,
        seed=int(generator.integers(2**31)),
    )


def draw(scene: Scene) -> NDArray[np.uint8]:
    """All frames of a scene, ``[T, H, W, 3]``, RGB."""
    generator = np.random.default_rng(scene.seed)
    background = generator.integers(25, 50)
    lanes = (np.arange(scene.count) + 0.5) / scene.count + generator.uniform(-0.03, 0.03, scene.count)
    grain = background + NOISE * generator.standard_normal((scene.height, scene.width), dtype=np.float32)
    frames = np.empty((scene.length * scene.fps, scene.height, scene.width, 3), np.uint8)
    for index in range(len(frames)):
        moved = np.roll(
            grain, tuple(generator.integers(0, (scene.height, scene.width))), axis=(0, 1)
        )  # much cheaper than new noise
        frame = moved.clip(0, 255).astype(np.uint8)[..., None].repeat(3, axis=2)
        time = index / scene.fps
        if scene.start <= time < scene.end:
            done = (time - scene.start) / (scene.end - scene.start)
            for lane in lanes:
                frame[_covered(scene, done, lane)] = COLOURS[scene.colour]
        frames[index] = frame
    return frames


def _covered(scene: Scene, done: float, lane: float) -> NDArray[np.bool_]:
    """The pixels of one shape, ``done`` (0 to 1) of its way from the middle to the edge, in its lane (0 to 1) across."""
    rows, columns = np.mgrid[: scene.height, : scene.width]
    x, y = (columns + 0.5) / scene.width, (rows + 0.5) / scene.height
    ahead, aside = (x if scene.direction == "right" else 1 - x) - (0.5 + 0.45 * done), y - lane
    return ahead**2 + aside**2 < RADIUS**2 if scene.round_shapes else np.maximum(abs(ahead), abs(aside)) < RADIUS


def write_film(scene: Scene, path: Path) -> None:
    """Encodes a scene as H.264 in MP4."""
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(
            "libx264", rate=Fraction(scene.fps), options={"preset": "ultrafast", "crf": "18", "threads": "1"}
        )
        stream.width, stream.height, stream.pix_fmt = scene.width, scene.height, "yuv420p"
        for picture in draw(scene):
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
