"""Which rows are computed together: parts of like work, and parts that fit a budget of tokens."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence

from evr1_core.api import ConfigError


def attention_workload(length: int) -> float:
    """Work on a row in a model of about 7 billion parameters, in units of its own: attention and the linear layers."""
    return float(length * length + 24576 * length)


def partition(
    lengths: Sequence[int], k: int, *, equal_size: bool, workload: Callable[[int], float] | None = None
) -> list[list[int]]:
    """The indices of ``lengths`` in ``k`` parts of like work (Karmarkar-Karp differencing, then exchanges).

    Each index is in one part; no part is empty; the same lengths give the same parts. ``equal_size``: all parts have as many rows,
    which ``k`` must divide. ``workload`` of a length; None: the length. Raises ValueError when it cannot be done.
    """
    if not 1 <= k <= len(lengths):
        raise ValueError(f"{len(lengths)} rows cannot be put into {k} parts that are not empty")
    if equal_size and len(lengths) % k:
        raise ValueError(f"{len(lengths)} rows cannot be put into {k} parts of equal size")
    work = [workload(length) if workload else float(length) for length in lengths]
    parts = _differencing(work, k, equal_size)
    _fill_empty(parts, work)
    _exchange(parts, work, equal_size)
    return sorted(sorted(part) for part in parts)


def by_budget(lengths: Sequence[int], max_tokens: int, at_least: int = 1) -> list[list[int]]:
    """The indices of ``lengths`` in as few parts of at most ``max_tokens`` as balancing finds, ``at_least`` so many.

    Raises ConfigError for a row that is longer.
    """
    longest = max(lengths)
    if longest > max_tokens:
        raise ConfigError([f"a row of {longest} tokens is longer than the budget of {max_tokens} tokens of one pass; raise it"])
    k = max(at_least, -(-sum(lengths) // max_tokens))
    while True:
        parts = partition(lengths, k, equal_size=False)
        if all(sum(lengths[index] for index in part) <= max_tokens for part in parts):
            return parts
        k += 1  # at the latest, every row is a part of its own


def _differencing(work: Sequence[float], k: int, equal_size: bool) -> list[list[int]]:
    """Joins, again and again, the two partial solutions whose parts differ most, the large parts of one with the small ones of the
    other. With ``equal_size`` a partial solution starts with k rows, one in each part, so that sizes stay equal."""
    order = sorted(range(len(work)), key=lambda index: (-work[index], index))
    chunks = [order[i : i + k] for i in range(0, len(order), k)] if equal_size else [[index] for index in order]
    heap: list[tuple[float, int, list[tuple[float, list[int]]]]] = []
    for number, chunk in enumerate(chunks):
        solution = [(work[index], [index]) for index in chunk] + [(0.0, []) for _ in range(k - len(chunk))]
        heap.append((solution[-1][0] - solution[0][0], number, solution))
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        (_, _, one), (_, _, other) = heapq.heappop(heap), heapq.heappop(heap)
        joined = [(a + b, x + y) for (a, x), (b, y) in zip(one, reversed(other), strict=True)]
        joined.sort(key=lambda part: (-part[0], part[1]))
        heapq.heappush(heap, (joined[-1][0] - joined[0][0], number, joined))
        number += 1
    return [rows for _, rows in heap[0][2]]


def _fill_empty(parts: list[list[int]], work: Sequence[float]) -> None:
    """Gives each empty part the lightest row of the part with most rows."""
    for part in parts:
        if not part:
            giver = max(parts, key=len)
            row = min(giver, key=lambda index: (work[index], index))
            giver.remove(row)
            part.append(row)


def _exchange(parts: list[list[int]], work: Sequence[float], equal_size: bool) -> None:
    """Swaps rows of the heaviest and the lightest part, or gives them away, as long as the heavier of the two gets lighter."""
    for _ in range(len(work)):
        loads = [sum(work[index] for index in part) for part in parts]
        heavy, light = parts[loads.index(max(loads))], parts[loads.index(min(loads))]
        gap = max(loads) - min(loads)
        swaps = [
            (abs(gap - 2 * moved), mine, theirs)
            for moved, mine, theirs in _moves(heavy, light, work, equal_size)
            if 0 < moved < gap
        ]
        if not swaps:
            return
        _, mine, theirs = min(swaps)
        heavy.remove(mine)
        light.append(mine)
        if theirs >= 0:
            light.remove(theirs)
            heavy.append(theirs)


def _moves(heavy: list[int], light: list[int], work: Sequence[float], equal_size: bool) -> Iterator[tuple[float, int, int]]:
    """(work that leaves the heavy part, row that leaves, row that comes back; -1: none)."""
    for mine, theirs in itertools.product(heavy, light):
        yield work[mine] - work[theirs], mine, theirs
    if not equal_size and len(heavy) > 1:
        for mine in heavy:
            yield work[mine], mine, -1
