"""Pixels as the published path makes them: bicubic with antialias on 8-bit values (qwen-vl-utils 0.0.14)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from av.video.reformatter import VideoReformatter
from torch import Tensor
from torch.nn import functional

from evr1_core.cache.turn import Turn


class Converter:
    """Makes decoded frames into upright RGB of one size. Holds FFmpeg's converter, whose tables are costly to make."""

    def __init__(self, height: int, width: int, turn: Turn) -> None:
        self._size, self._turn = (height, width), turn
        self._reformatter = VideoReformatter()

    def __call__(self, frame: Any) -> Tensor:
        """uint8 ``[3, height, width]``."""
        rgb = self._reformatter.reformat(frame, format="rgb24", threads=1)
        plane = rgb.planes[0]
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[: rgb.height, : rgb.width * 3]
        picture = self._turn(rows.reshape(rgb.height, rgb.width, 3, copy=False))
        return resized(torch.from_numpy(picture).permute(2, 0, 1), *self._size)


def resized(picture: Tensor, height: int, width: int) -> Tensor:
    """uint8 ``[3, H, W]`` as uint8 ``[3, height, width]``."""
    if tuple(picture.shape[1:]) == (height, width):
        return picture
    return functional.interpolate(picture[None], size=(height, width), mode="bicubic", antialias=True)[0]
