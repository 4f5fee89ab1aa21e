"""Text read from the picture: one minus the word error rate."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api import BadGoldError, RewardInput, Sample
from evr1_plugins.rewards.ocr import Ocr

SIGN = "GATE 12 closes soon"


def distance(left: list[str], right: list[str]) -> int:
    """Edit distance by the textbook table, as an independent slow version."""
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (one != other))
    return row[-1]


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy"),
    [
        (SIGN, SIGN, 1.0),
        (SIGN, "gate 12 CLOSES soon", 1.0),
        (SIGN, "GATE 72 closes soon", 3 / 4),  # one replaced
        (SIGN, "GATE closes soon", 3 / 4),  # one missing
        (SIGN, "GATE 12 closes very soon", 3 / 4),  # one too many
        (SIGN, "GATE 12 closes soon.", 3 / 4),  # punctuation is part of what stands there
        (SIGN, "soon closes 12 GATE", 0.0),  # four replaced, or worse
        (SIGN, "12 GATE closes soon", 2 / 4),
        (SIGN, "GATE  12\ncloses\tsoon ", 1.0),
        ("max speed 30 km / h", "max speed 30 km / h", 1.0),
        ("max speed 30 km / h", "max speed 30 km/h", 3 / 6),
        ("sale today", "sale " * 40, 0.0),  # an error rate of 19.5
        ("ＥＸＩＴ", "EXIT", 1.0),  # full-width letters
        ("STRASSE", "straße", 1.0),
        ("出口在左边", "出口在右边", 4 / 5),  # characters count where no blanks are written
        ("出口在左边", "出口 在左边", 1.0),
        ("ทางออก", "ทางออก", 1.0),
        ("東京タワー 333 m", "東京タワー 332 m", 6 / 7),  # five characters and two words
        ("2 3", "2", 1 / 2),
    ],
)
def test_accuracy(record, score, gold, answer, accuracy) -> None:
    result = score(Ocr(), record("ocr", gold), answer)
    assert result.accuracy == pytest.approx(accuracy, abs=1e-12)
    assert result.parsed


def test_case_can_count(record, score) -> None:
    strict = Ocr(case_sensitive=True)
    assert score(strict, record("ocr", SIGN), SIGN).accuracy == 1.0
    assert score(strict, record("ocr", SIGN), "Gate 12 closes soon").accuracy == 3 / 4


@pytest.mark.parametrize("answer", [None, "", "   ", "\n"])
def test_no_answer(record, score, answer) -> None:
    result = score(Ocr(), record("ocr", SIGN), answer)
    assert (result.accuracy, result.parsed) == (0.0, False)


@pytest.mark.parametrize("gold", ["", "  ", "<answer> </answer>", "<think>EXIT</think>"])
def test_broken_gold(record, score, gold) -> None:
    with pytest.raises(BadGoldError, match=r"a\.jsonl:1: record 'r1'"):
        score(Ocr(), record("ocr", gold), "EXIT")


def test_gold_that_is_a_number(record, score) -> None:
    assert score(Ocr(), record("ocr", 12), "12").accuracy == 1.0


def test_many_copies_of_the_gold_do_not_earn_more(record, score) -> None:
    sample = record("ocr", SIGN)
    assert score(Ocr(), sample, f"{SIGN} {SIGN}").accuracy == 0.0
    assert score(Ocr(), sample, f"I read: {SIGN}").accuracy == 2 / 4
    assert score(Ocr(), sample, " ".join(f"GATE {n} closes soon" for n in range(10, 20))).accuracy == 0.0


def test_agrees_with_the_table_on_random_texts() -> None:
    rng = random.Random(3)
    reward = Ocr()
    for _ in range(500):
        gold = rng.choices(["exit", "gate", "no", "smoking", "12", "12a"], k=rng.randint(1, 12))
        guess = [word for word in gold if rng.random() > 0.2] + rng.choices(["exit", "12"], k=rng.randint(0, 4))
        rng.shuffle(guess) if rng.random() < 0.3 else None
        text = " ".join(guess)
        sample = Sample(uid="r", task="ocr", problem="", answer=" ".join(gold))
        expected = max(0.0, 1 - distance(guess, gold) / len(gold)) if guess else 0.0
        result = reward.score(RewardInput(sample=sample, response=text, answer=text))
        assert result.accuracy == pytest.approx(expected, abs=1e-12)


@given(st.text(min_size=1, max_size=200))
def test_the_gold_itself_is_right(text: str) -> None:
    sample = Sample(uid="r", task="ocr", problem="", answer=f"<answer>x {text}</answer>")
    if "<" not in text:
        item = RewardInput(sample=sample, response=text, answer=f"x {text}".strip())
        assert Ocr().score(item).accuracy == 1.0
