"""Weights on their way to another process: a file in memory that holds one large tensor, or several small ones, at a time."""

from __future__ import annotations

import mmap
import os
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from attrs import asdict, frozen
from torch import Tensor

SIZE = 64 << 20  # bytes that are sent together, unless a single tensor has more
ALIGNED = 64  # bytes; views of any type begin at a multiple of their item size
SHOWN = 1 << 20  # bytes at the beginning of every tensor that the checksum covers


@frozen(kw_only=True)
class Entry:
    """One tensor in the buffer."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    checksum: int

    def plain(self) -> dict[str, Any]:
        """As messages carry it."""
        return asdict(self)


class Buffer:
    """The sender's side: ``path`` is a file of ``size`` bytes in memory where there is room, else on disk. The name can go once
    the receivers have opened it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.path = _reserved(size)
        self._bytes = mapped(self.path, size)
        self._entries: list[Entry] = []
        self._end = 0

    def fits(self, value: Tensor) -> bool:
        """There is room for one more tensor."""
        return self._end + value.nbytes <= self.size

    def put(self, name: str, value: Tensor) -> None:
        """Copies a tensor into the buffer, from any device."""
        target = self._bytes[self._end : self._end + value.nbytes]
        target.view(value.dtype).copy_(value.detach().flatten())
        kind = str(value.dtype).removeprefix("torch.")
        self._entries.append(Entry(name=name, dtype=kind, shape=tuple(value.shape), offset=self._end, checksum=checksum(target)))
        self._end += -(-value.nbytes // ALIGNED) * ALIGNED

    def take(self) -> Sequence[Entry]:
        """What was put in since the last call; the room is free again."""
        entries, self._entries, self._end = self._entries, [], 0
        return entries

    def unlink(self) -> None:
        """Takes the name away; what has been mapped stays until nobody uses it."""
        with suppress(FileNotFoundError):
            self.path.unlink()


def mapped(path: Path, size: int) -> Tensor:
    """uint8 ``[size]``: the file's bytes, shared with all who map it."""
    with open(path, "r+b") as file:
        return torch.frombuffer(mmap.mmap(file.fileno(), size), dtype=torch.uint8)


def tensor_at(data: Tensor, dtype: str, shape: Sequence[int], offset: int) -> Tensor:
    """A view of one tensor in the buffer."""
    kind = getattr(torch, dtype)
    count = torch.Size(shape).numel()
    return data[offset : offset + count * kind.itemsize].view(kind).view(torch.Size(shape))


def checksum(value: Tensor) -> int:
    """CRC-32 of the first ``SHOWN`` bytes of a tensor, as they lie in memory."""
    raw = value.detach().flatten()[: SHOWN // value.element_size()].contiguous().cpu().view(torch.uint8)
    return zlib.crc32(raw.numpy().tobytes())


def _reserved(size: int) -> Path:
    """A new file whose bytes are there: a write to a full memory file system would end the process without a word."""
    memory = Path("/dev/shm")
    folders = [memory, Path(tempfile.gettempdir())] if memory.is_dir() else [Path(tempfile.gettempdir())]
    for folder in folders:
        handle, name = tempfile.mkstemp(prefix="evr1-weights-", dir=folder)
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError:
            os.unlink(name)
            if folder == folders[-1]:
                raise
        else:
            return Path(name)
        finally:
            os.close(handle)
    raise AssertionError("no folder was tried")
