"""Texts of every unwelcome form and length, and how long a plugin may look at one."""

from __future__ import annotations

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
