"""Numbers: rewards.md (strict) and benchmarks.md 5.2 (lenient)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api.answers import Number, aligned, count, number, same_number

READ = [
    ("3.5", 3.5),
    ("about 3.5 meters", 3.5),
    ("7,243,000", 7243000),
    ("7.243e6", 7243000),
    ("7.243 × 10^6", 7243000),
    ("$7.243 \\times 10^{6}$", 7243000),
    ("7.2 × 10⁶ m", 7200000),
    ("three", 3),
    ("There are three.", 3),
    ("twenty-five", 25),
    ("Seventy", 70),
    (".25", 0.25),
    ("1/4", 0.25),
    ("\\frac{1}{4}", 0.25),
    ("1 1/2 cups", 1.5),
    ("½", 0.5),
    ("1½", 1.5),
    ("-5", -5),
    ("−5", -5),
    ("+5", 5),
    ("$1,234.50", 1234.5),
    ("1.234,5", 1234.5),
    ("3,5", 3.5),
    ("0,125", 0.125),
    ("1,234", 1234),
    ("5 m²", 5),
    ("12people", 12),
    ("**42**", 42),
    ("\\boxed{42}", 42),
    ("4, so 4.0", 4),
    ("2 thousand", 2000),
    ("５", 5),
    ("Room Q3 holds 7", 7),
    ("50%", 50),
    ("50 percent", 50),
]
UNREADABLE = [
    "",
    "nan",
    "inf",
    "-infinity",
    "I cannot tell",
    "1e999",
    "1/0",
    "1.2.3",
    "3 or 4",
    "between 2 and 3",
    "3-5",
    "2^99",
    "1,2,3",
    "12:30",
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_strict(text: str, value: float) -> None:
    found = number(text)
    assert found is not None
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.percent == ("%" in text or "percent" in text)


@pytest.mark.parametrize("text", UNREADABLE)
def test_no_answer(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("3.5", 3.5),
        ("Therefore, the final answer is: 3.5 m.", 3.5),
        ("There are 2 rows of 4, so the answer is 8", 8),
        ("3 m, which is 2 more", 3),
        ("between 2 and 3", 3),
        ("I cannot tell", None),
    ],
)
def test_lenient(reply: str, value: float | None) -> None:
    found = number(reply, mode="lenient")
    assert (found.value if found else None) == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("a total of 5", 5),
        ("twice", 2),
        ("once", 1),
        ("2 of 3 shown, so the count is 2", 2),
        ("none", 0),
        ("2.5", None),
        ("once or twice", None),
        ("some", None),
        ("", None),
    ],
)
def test_count(reply: str, value: int | None) -> None:  # benchmarks.md 5.3
    assert count(reply, mode="lenient") == value


@pytest.mark.parametrize(
    ("guess", "gold", "equal"),
    [
        (Number(0.5), Number(50, True), True),
        (Number(50), Number(50, True), True),
        (Number(50, True), Number(50, True), True),
        (Number(0.5, True), Number(50, True), False),
        (Number(50, True), Number(0.5), False),
        (Number(50, True), Number(50), True),
    ],
)
def test_percent_counts_only_when_the_gold_has_it(guess: Number, gold: Number, equal: bool) -> None:
    assert same_number(aligned(guess, gold), gold.value) is equal


@pytest.mark.parametrize(
    ("guess", "gold", "tolerance", "equal"),
    [
        (3.14159, 3.14, None, True),
        (2.02, 2.0, None, False),
        (2.02, 2.0, 0.02, True),
        (2.675, 2.68, None, True),  # half up in decimal; the float 2.675 lies below
        (4.0, 4, None, True),
        (1e300, 1e300, None, True),
        (1e300, 1.0000001e300, None, False),
        (-0.001, 0.0, None, True),
    ],
)
def test_two_decimals(guess: float, gold: float, tolerance: float | None, equal: bool) -> None:
    assert same_number(guess, gold, tolerance) is equal


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_reads_back_what_python_writes(value: float) -> None:
    for text in (repr(value), f"about {value!r} m"):
        found = number(text)
        assert found is not None
        assert found.value == value


@given(st.integers(-(10**12), 10**12))
def test_reads_grouped_integers(value: int) -> None:
    assert number(f"{value:,}") == Number(float(value))


@given(st.text(max_size=300))
def test_always_finite(text: str) -> None:
    for mode in ("strict", "lenient"):
        found = number(text, mode=mode)
        assert found is None or math.isfinite(found.value)
