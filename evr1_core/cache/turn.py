"""The upright direction of a picture, from the display matrix that phones write into films."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray


@frozen
class Turn:
    """``swap`` rows and columns first, then flip left to right (``mirror``) and top to bottom (``overturn``)."""

    swap: bool = False
    mirror: bool = False
    overturn: bool = False

    def __call__(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """``picture`` ``[H, W, 3]`` turned; contiguous, unless there is nothing to do."""
        if self == UPRIGHT:
            return picture
        turned = picture.swapaxes(0, 1) if self.swap else picture
        rows, columns = slice(None, None, -1 if self.overturn else 1), slice(None, None, -1 if self.mirror else 1)
        return np.ascontiguousarray(turned[rows, columns])


UPRIGHT = Turn()


def turn_of(frame: Any) -> Turn:
    """What the frame's display matrix asks for, in steps of 90 degrees."""
    for data in frame.side_data:
        if data.type.name == "DISPLAYMATRIX":
            # x' = a x + c y, y' = b x + d y, in 16.16 fixed point; rows of the matrix are (a, b, u), (c, d, v), (x, y, w)
            a, b, _, c, d = struct.unpack_from("=5i", bytes(data))
            if abs(a) >= abs(b):
                return Turn(mirror=a < 0, overturn=d < 0)
            return Turn(swap=True, mirror=c < 0, overturn=b < 0)
    return UPRIGHT
