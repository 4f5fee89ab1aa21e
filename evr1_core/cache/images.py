"""Still images: upright, RGB, resized as the published path does."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from evr1_core.api import MediaError


def load_image(path: str, size_for: Callable[[int, int], tuple[int, int]]) -> tuple[Tensor, tuple[int, int]]:
    """(uint8 ``[1, 3, H, W]``, (height, width) of the upright source); ``size_for`` gives the first from the second.

    Turned as EXIF says, transparency on white. Raises MediaError.
    """
    picture = _opened(path)
    source = (picture.height, picture.width)
    height, width = size_for(*source)
    small = picture.resize((width, height))  # Pillow's own filter for this is bicubic with antialias
    return torch.from_numpy(np.array(small)).permute(2, 0, 1)[None].contiguous(), source


def image_source_size(path: str) -> tuple[int, int]:
    """(height, width) of the upright source."""
    picture = _opened(path)
    return picture.height, picture.width


def _opened(path: str) -> Image.Image:
    try:
        if os.stat(path).st_size == 0:
            raise MediaError(path, "empty", "is empty")
        with Image.open(path) as image:
            return _rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError as error:
        raise MediaError(path, "missing", "there is no such file") from error
    except PermissionError as error:
        raise MediaError(path, "forbidden", "may not be read") from error
    except IsADirectoryError as error:
        raise MediaError(path, "no_file", "is a folder") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise MediaError(path, "undecodable", f"no readable image ({error})") from error


def _rgb(image: Any) -> Image.Image:
    if image.mode not in ("RGBA", "LA", "PA", "La", "RGBa") and "transparency" not in image.info:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    ground = Image.new("RGB", clear.size, (255, 255, 255))
    ground.paste(clear, mask=clear.getchannel("A"))
    return ground
