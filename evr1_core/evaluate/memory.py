"""How much of the main memory the frames of questions under way may take."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from attrs import define, field

from evr1_core.api import Request

SHARE = 4  # a quarter of the memory, where nothing is said
BYTES = 4  # of a value of a patch, once a processor has made numbers of 4 bytes from pixels
LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container


def cost(request: Request) -> int:
    """Bytes that the frames of a request take in an engine."""
    return BYTES * sum(clip.frames.numel() for clip in request.clips)


def allowance(gigabytes: float) -> int:
    """The bytes of a setting; for 0, a share of the memory that there is."""
    if gigabytes:
        return int(gigabytes * 2**30)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = LIMIT.read_text("ascii").strip() if LIMIT.is_file() else ""
    return (min(total, int(limit)) if limit.isdecimal() else total) // SHARE


@define
class Room:
    """Lets requests in while their frames fit into ``limit`` bytes together; one alone may be larger."""

    limit: int
    _used: int = field(default=0, init=False)
    _waiting: list[tuple[int, asyncio.Future[None]]] = field(factory=list, init=False)

    def fits(self, size: int, beside: int) -> bool:
        """Whether there is room for ``size`` bytes beside as many others."""
        return beside == 0 or beside + size <= self.limit

    async def enter(self, size: int) -> None:
        """Waits for room, in the order asked."""
        if not self._waiting and self.fits(size, self._used):
            self._used += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        await turn

    def leave(self, size: int) -> None:
        """Gives room back."""
        self._used -= size
        while self._waiting and self.fits(self._waiting[0][0], self._used):
            given, turn = self._waiting.pop(0)
            if not turn.cancelled():
                self._used += given
                turn.set_result(None)
