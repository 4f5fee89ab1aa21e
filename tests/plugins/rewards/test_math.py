"""Mathematics: symbolic equality, in workers that are killed at their limit."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evr1_core.api import BadGoldError, RewardInput, RewardResult, Sample
from evr1_plugins.rewards.math import Math

TOWER = "$9^{9^{9^{9}}}$"
LETTERS = ("A. 3", "B. 4", "C. 5")


@pytest.fixture(name="reward", scope="module")
def _reward() -> Iterator[Math]:
    reward = Math()
    yield reward
    reward.close()


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("0.5", "\\dfrac{1}{2}"),
        ("\\frac{1}{2}", "1/2"),
        ("$\\frac12$", "0.5"),
        ("73", "**73**"),
        ("5", "x = 5"),
        ("x = 5", "5"),
        ("5", "$5$"),
        ("5", "\\boxed{5}"),
        ("5", "The answer is 5."),
        ("1,234,567", "1234567"),
        ("2\\sqrt{2}", "\\sqrt{8}"),
        ("(x+1)^2", "x^2+2x+1"),
        ("\\{1, 2, 3\\}", "\\{3, 1, 2\\}"),
        ("1, 2", "2, 1"),
        ("1331 and 1728", "1728, 1331"),
        ("(1, 2)", "(1,2)"),
        ("[0, 1)", "[0,1)"),
        ("$3x+4y+14=0$", "$6x+8y+28=0$"),
        ("$3x+4y=-14$", "$3x+4y+14=0$"),
        ("$y=2x+1$", "$2x+1=y$"),
        ("$\\frac{1}{2^{99}}$", "$2^{-99}$"),
        ("\\frac{\\pi}{2}", "\\pi/2"),
        ("10^{-9}", "$1 \\times 10^{-9}$"),
        ("-3", "$-3$"),
        ("<answer>7</answer>", "7"),
        ("2", "2.0"),
        ("-1", "e^{i\\pi}"),
        ("-1", "$i^2$"),
        ("i", "\\sqrt{-1}"),
        ("5", "|3+4i|"),
        ("e^{i\\theta}", "\\cos\\theta+i\\sin\\theta"),
        ("55", "\\sum_{i=1}^{10} i"),
        ("\\cos 60^\\circ", "1/2"),
        ("\\sin(30^\\circ+60^{\\circ})", "1"),
        ("30^\\circ", "30"),
        ("1", "\\sin^2 x+\\cos^2 x"),
        ("3", "\\log_2 8"),
        ("0.1\\overline{6}", "1/6"),
        ("0.\\bar{3}", "\\frac13"),
        ("(1, 2)", "\\langle 1, 2\\rangle"),
        ("x^2", "x**2"),
    ],
)
def test_equal(reward, record, score, gold, answer) -> None:
    assert score(reward, record("math", gold), answer).accuracy == 1.0


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("2", "3"),
        ("1331 and 1728", "1728"),
        ("1728", "1331 and 1728"),
        ("$\\frac{1}{2^{99}}$", "$\\frac{1}{2^{98}}$"),
        ("10^{-9}", "0"),
        ("0", "10^{-9}"),
        ("10^{-9}", "2\\times 10^{-9}"),
        ("$4$", "$4\\sqrt{2}$"),
        ("$4\\sqrt{2}$", "$4$"),
        ("$3x+4y+14=0$", "$3x-y+13=0$"),
        ("$3x+4y+14=0$", "0"),
        ("$y=2x+1$", "$y=2x+2$"),
        ("(1, 2)", "(2, 1)"),
        ("[1, 2]", "[2, 1]"),
        ("(0, 1)", "[0, 1]"),
        ("\\{1, 2\\}", "\\{1, 2, 3\\}"),
        ("\\{1, 2\\}", "1"),
        ("12", "1 2 3 12"),
        ("12", "112"),
        ("5", "-5"),
        ("x+1", "x"),
        ("5", "1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("5", "5 or 6"),
        ("5", "\\boxed{5} \\boxed{6}"),
        ("5", "x = y"),
        ("\\frac{1}{2}", "\\frac{1}{0}"),
    ],
)
def test_not_equal(reward, record, score, gold, answer) -> None:
    assert score(reward, record("math", gold), answer).accuracy == 0.0


@pytest.mark.parametrize("answer", [None, "", "  ", "I do not know", "$$", "\\boxed{}", "???", "{" * 50, "\\frac{", "5" * 50_000])
def test_no_answer(reward, record, score, answer) -> None:
    result = score(reward, record("math", "5"), answer)
    assert (result.accuracy, result.parsed) == (0.0, False)


@pytest.mark.parametrize("gold", ["", "<think>5</think>", "$$", "???"])
def test_broken_gold(reward, record, score, gold) -> None:
    with pytest.raises(BadGoldError, match=r"a\.jsonl:1: record 'r1'"):
        score(reward, record("math", gold), "5")


@pytest.mark.parametrize(
    ("answer", "accuracy"), [("B", 1.0), ("(B)", 1.0), ("B. 4", 1.0), ("4", 1.0), ("A", 0.0), ("A or B", 0.0), ("A B", 0.0)]
)
def test_letters_with_options(reward, record, score, answer, accuracy) -> None:
    assert score(reward, record("math", "B", LETTERS), answer).accuracy == accuracy


def test_random_fractions_against_exact_arithmetic(reward) -> None:
    rng = random.Random(5)
    items, expected = [], []
    for number in range(200):
        a, b, c, d = (rng.randint(1, 12) for _ in range(4))
        right, left = Fraction(a, b) + Fraction(c, d), Fraction(a * d + c * b + rng.choice([0, 0, 1, -1]), b * d)
        answer = rng.choice([f"\\frac{{{left.numerator}}}{{{left.denominator}}}", f"{left.numerator}/{left.denominator}"])
        sample = Sample(uid=str(number), task="math", problem="", answer=f"$\\frac{{{a}}}{{{b}}}+\\frac{{{c}}}{{{d}}}$")
        items.append(RewardInput(sample=sample, response=answer, answer=answer))
        expected.append(float(left == right))
    assert [result.accuracy for result in reward.score_batch(items)] == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.slow
def test_an_expression_without_end_is_cut_off_and_the_next_one_is_read(record, score) -> None:
    reward = Math(time_limit=1.0, workers=1)
    try:
        assert score(reward, record("math", "2"), "2").accuracy == 1.0
        for answer in (TOWER, "$(((10^{10})!)!)!$", "$\\sum_{n=1}^{10^9} \\frac{1}{n^{1.5}}$"):
            start = time.monotonic()
            assert score(reward, record("math", "2"), answer).accuracy == 0.0
            assert time.monotonic() - start < 20  # the limit, and a new worker on a busy machine
        assert score(reward, record("math", "2"), "2").accuracy == 1.0
    finally:
        reward.close()


def test_works_off_the_main_thread(reward, record, score) -> None:
    results: list[RewardResult] = []
    thread = threading.Thread(target=lambda: results.extend(score(reward, record("math", "2"), text) for text in ("2", TOWER)))
    thread.start()
    thread.join(timeout=60)
    assert [result.accuracy for result in results] == [1.0, 0.0]


def test_a_batch_keeps_its_order_past_a_killed_worker(record) -> None:
    reward = Math(time_limit=1.0)
    sample = record("math", "2")
    try:
        results = reward.score_batch(
            [RewardInput(sample=sample, response=text, answer=text) for text in ("2", TOWER, "3", "2", "")]
        )
    finally:
        reward.close()
    assert [result.accuracy for result in results] == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_closing_twice_and_using_again(record, score) -> None:
    reward = Math(workers=1)
    reward.close()
    assert score(reward, record("math", "2"), "2").accuracy == 1.0
    reward.close()
    reward.close()


PIECES = [
    "1",
    "2",
    "x",
    "y",
    "+",
    "-",
    "=",
    "^",
    "_",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "$",
    " ",
    "\\frac",
    "\\sqrt",
    "\\pi",
    "\\{",
    "and",
]


@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=100))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text(reward, text: str) -> None:
    sample = Sample(uid="r", task="math", problem="", answer="\\frac{1}{2}")
    result = reward.score(RewardInput(sample=sample, response=text, answer=text))
    assert result.accuracy in (0.0, 1.0)
    assert result.parsed or result.accuracy == 0.0


@pytest.mark.parametrize("piece", ["1", "{", "\\frac{1}{", "$1$ ", "(", "x^", "\ufdfa", "and ", "1,"])
def test_long_texts_are_quick(reward, piece) -> None:
    text = (piece * 100_000)[:100_000]
    sample = Sample(uid="r", task="math", problem="", answer="\\frac{1}{2}")
    start = time.monotonic()
    assert reward.score(RewardInput(sample=sample, response=text, answer=text)).accuracy == 0.0
    assert time.monotonic() - start < 5
