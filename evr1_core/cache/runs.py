"""Which packets must be decoded for a choice of frames: whole stretches from a key frame to the last frame needed from there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evr1_core.cache.scan import Packet

SHORT_GAP = 8  # packets; restarting the decoder's threads costs about as much as decoding these


def plan_runs(packets: Sequence[Packet], wanted: Collection[int]) -> list[tuple[int, int]]:
    """Stretches ``(first, last)`` of packet numbers, ascending and apart; their packets are all that has to be decoded.

    A frame can be decoded from a key frame that precedes it in the file and is not shown after it: frames shown before a key frame
    that they follow in the file (an open group) may still need the group before.
    """
    runs: list[tuple[int, int]] = []
    keys: list[int] = []
    for number, packet in enumerate(packets):
        if packet.key:
            keys.append(number)
        if packet.stamp in wanted and packet.stamp is not None:
            runs.append((_start(packets, keys, packet.stamp), number))
    return _joined(sorted(runs))


def _start(packets: Sequence[Packet], keys: Sequence[int], stamp: int) -> int:
    for number in reversed(keys):
        shown = packets[number].stamp
        if shown is not None and shown <= stamp:
            return number
    return 0


def _joined(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first - joined[-1][1] <= SHORT_GAP:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
