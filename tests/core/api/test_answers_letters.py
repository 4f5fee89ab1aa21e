"""Option letters: rewards.md (strict) and benchmarks.md 5.1 (lenient)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api.answers import option_letter, option_letters, split_options

CARS = ("A. A red car", "B. A blue van", "C. A green truck", "D. A yellow bus")
KITES = ("A. a blue boat", "B. a dog", "C. the red kite", "D. nothing")
SIX = tuple(f"{letter}. option {i}" for i, letter in enumerate("ABCDEF"))

STRICT = [
    ("C", "C"),
    ("c", "C"),
    ("(C)", "C"),
    ("C.", "C"),
    ("C)", "C"),
    ("C:", "C"),
    ("**C**", "C"),
    ("$\\boxed{\\text{C}}$", "C"),
    ("（Ｃ）", "C"),
    ("Option C", "C"),
    ("C. the red kite", "C"),
    ("C) blue", "C"),
    ("(C) anything else", "C"),
    ("The answer is (C)", "C"),
    ("The answer is **C**.", "C"),
    ("Answer: (C)", "C"),
    ("The best answer is: C", "C"),
    ("Therefore, the final answer is: D", "D"),
    ("the correct option is C because of the kite", "C"),
    ("The answer is option B.", "B"),
    ("Answer choice: C", "C"),
    ("D is not the answer; the answer is C", "C"),
    ("Final answer: B (not A)", "B"),
    ("答案：C", "C"),
    ("答案是c。", "C"),
    ("The answer is c, as seen", "C"),
    ("the answer is A because it floats", "A"),
    ("A is the correct answer.", "A"),
    ("the red kite", "C"),
    ("THE  red\nkite!", "C"),
    ("The answer is a dog", "B"),
    ("The answer is the red kite.", "C"),
    ("C because I counted three wheels", "C"),
    ("B\nThe dog barks.", "B"),
    ("b) a dog", "B"),
    ("故选C。", "C"),
    ("答えはCです", "C"),
    # no answer
    ("", None),
    ("A or B or C", None),
    ("B or C", None),
    ("A/B", None),
    ("The answer is A or B", None),
    ("The answer is B or maybe C", None),
    ("It is between A and B.", None),
    ("all of the above", None),
    ("A man walks in", None),
    ("I think so", None),
    ("Company B", None),
    ("Based on the video, he leaves.", None),
    ("E", None),
    ("The final answer is: F", None),
    ("The answer is not B", None),
    ("The wrong answer is C", None),
    ("Is the answer C?", None),
    ("The answer is A. The answer is B", None),
    ("So the answer is B. Wait, the hat is blue. The final answer is C", None),
    ("B is wrong", None),
    ("a dog or the red kite", None),
    ("(A) (B) (C) (D)", None),
    ("A. a blue boat\nB. a dog\nC. the red kite", None),
    ("A. B. C. D.", None),
    ("i.e. the dog", None),
    ("b) another dog", None),
    ("D-day", None),
    ("A and B are both visible", None),
    ("Answer: B/C", None),
    ("The answer is (A)(B)", None),
    ("The answer is A B", None),
    ("The answer is A.B.C.D", None),
    ("The answer is B. A dog barks.", "B"),
    ("The answer is definitely visible", None),
    ("I considered (A), but the last frame rules it out.", None),
]


@pytest.mark.parametrize(("answer", "letter"), STRICT)
def test_strict(answer: str, letter: str | None) -> None:
    assert option_letter(answer, KITES) == letter


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        *((reply, KITES, "C") for reply in ("C", "c", "(C)", "C.", "C)", "C:", "**C**", "\\boxed{C}", "Option C")),
        *((reply, KITES, "C") for reply in ("C. the red kite", "C) red kite", "The answer is **C**.", "Answer: (C)")),
        ("The best answer is: C", KITES, "C"),
        ("So the answer is B. Wait, the hat is blue. The final answer is C", KITES, "C"),
        ("The answer is a dog", ("A. cat", "B. a dog"), "B"),
        ("I see that a dog is running", KITES, "B"),
        ("Based on the video, he leaves.", KITES, None),
        ("It is between A and B.", KITES, None),
        ("The final answer is: F", SIX, "F"),
        ("The final answer is: F", KITES, None),
        ("the hat is red\nso I take D", KITES, "D"),
        ("I take one", tuple(f"{c}. x{c}" for c in "ABCDEFGHI"), None),
    ],
)
def test_lenient(reply: str, options: tuple[str, ...], letter: str | None) -> None:
    assert option_letter(reply, options, mode="lenient") == letter


def test_labels_are_those_of_the_options() -> None:
    assert option_letter("y", ("B. x", "C. y", "D. z")) == "C"
    assert option_letter("A", ("B. x", "C. y", "D. z")) is None
    assert option_letter("J") == "J"
    assert option_letter("K") is None
    assert option_letter("4", ("A. 3", "B. 4", "C. 5")) == "B"
    assert option_letter("N", tuple(f"{chr(65 + i)}. {i}" for i in range(14))) == "N"


def test_options_that_look_like_answers() -> None:
    assert option_letter("A man walks in", ("A. Nobody", "B. Two dogs", "C. A man walks in")) == "C"
    assert option_letter("cat on a mat", ("A. cat", "B. cat on a mat")) == "B"
    assert option_letter("A. Smith", ("A. B. Jones", "B. A. Smith")) == "B"
    assert option_letter("all of the above", ("A. x", "B. y", "C. all of the above")) == "C"
    assert option_letter("same", ("A. same", "B. same")) is None


def test_several_letters() -> None:
    assert option_letters("A, C", CARS) == {"A", "C"}
    assert option_letters("A,C", CARS) == {"A", "C"}
    assert option_letters("A and C", CARS) == {"A", "C"}
    assert option_letters("AC", CARS) == {"A", "C"}
    assert option_letters("The answer is A, C and D.", CARS) == {"A", "C", "D"}
    assert option_letters("The answer is B and C.", CARS) == {"B", "C"}
    assert option_letter("A, C", CARS) is None
    assert option_letters("A, B is wrong", CARS) is None
    assert option_letters("ACE", ("A. x", "B. ACE", "C. z", "D. y", "E. w")) == {"B"}


@pytest.mark.parametrize(
    ("options", "labels", "texts"),
    [
        (("A. red", "B. blue"), ("A", "B"), ("red", "blue")),
        (("A: red", "B: blue"), ("A", "B"), ("red", "blue")),
        (("(A) red", "(B) blue"), ("A", "B"), ("red", "blue")),
        (("A) red", "B) blue"), ("A", "B"), ("red", "blue")),
        (("B. red", "C. blue"), ("B", "C"), ("red", "blue")),
        (("red", "blue"), ("A", "B"), ("red", "blue")),
        (("Smith", "A. Smith"), ("A", "B"), ("Smith", "A. Smith")),
        (("A. Jones", "B. A. Smith"), ("A", "B"), ("Jones", "A. Smith")),
        (("C. Smith", "A. Jones"), ("A", "B"), ("C. Smith", "A. Jones")),
        ((), (), ()),
    ],
)
def test_split_options(options: tuple[str, ...], labels: tuple[str, ...], texts: tuple[str, ...]) -> None:
    assert split_options(options) == (labels, texts)


FORMS = (
    "{}",
    "({})",
    "{}.",
    "**{}**",
    "{}. {text}",
    "The answer is {}",
    "The final answer is: ({}).",
    "答案：{}",
    "Option {}",
    "Answer: {}",
)


@given(form=st.sampled_from(FORMS), choice=st.integers(0, 3), options=st.sampled_from([CARS, KITES]))
def test_modes_agree_on_one_answer(form: str, choice: int, options: tuple[str, ...]) -> None:
    letter = "ABCD"[choice]
    answer = form.format(letter, text=options[choice][3:])
    assert option_letter(answer, options) == option_letter(answer, options, mode="lenient") == letter


@given(st.text(max_size=200), st.sampled_from([CARS, KITES, ()]))
def test_only_labels_come_out(text: str, options: tuple[str, ...]) -> None:
    for mode in ("strict", "lenient"):
        found = option_letters(text, options, mode=mode)
        assert found is None or found <= set("ABCDEFGHIJ"[: len(options) or 10])
