"""Texts of every unwelcome form and length, and how long a plugin may look at one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SECONDS = 2.0  # for one response of 100 kB; twice what is promised, for busy machines
HUGE = 100_000
GARBLED = (
    "",
    " \n\t ",
    "\x00\x01\ufffd",
    "\ud83d",
    "{[(<",
    "nan",
    "-inf",
    "1e999999",
    '{"time": [null, {}]}',
    '{"boxes": {"1": ["a"]}}',
    "[[[[",
    "<answer>",
    "</think></answer>",
    "\\boxed{",
    "\\frac{1}{",
    "A or B or C",
    "\u0661\u0662",
    "\u202e\u0915\u094d\u0937 \U0001f469\u200d\U0001f680",
)
HUGE_ANSWERS = (
    "a" * HUGE,
    "B " * (HUGE // 2),
    "9" * HUGE,
    "[" * HUGE,
    "(" * HUGE,
    "{" * HUGE,
    "<a>" * (HUGE // 3),
    "1, " * (HUGE // 3),
)


def timed(call: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """The result, and the seconds of the fastest of up to three calls: a busy machine is slow once, a slow plugin always."""
    seconds = float("inf")
    for _ in range(3):
        start = clock()
        result = call()
        seconds = min(seconds, clock() - start)
        if seconds <= SECONDS:
            break
    return result, seconds
