"""Taking the answer out of a response: rewards.md's rules, each with the case that a simpler rule gets wrong."""

from __future__ import annotations

import pytest

from evr1_core.api import BadGoldError, Sample
from evr1_core.api.answers import concluded, extract, gold_text, last_boxed

CASES = [
    ("<think>a</think><answer>C</answer>", "C"),
    ("<think>a</think> <answer> km / h, a < b </answer> ", "km / h, a < b"),
    ("<answer>A</answer> no, wait <answer>B</answer>", "B"),
    ("<think>x</think><answer>A <answer>B</answer>", "B"),
    ("<THINK>x</Think><Answer>yes</aNSWER>", "yes"),
    ("<thought><answer>A</answer></thought><answer>B</answer>", "B"),
    ("<thinking><answer>A</answer></thinking>\nthe second", "the second"),
    ("<think>the tags <answer>A</answer> in reasoning</think>", None),
    ("<think>tags are <think></think>, draft <answer>A</answer> hm</think><answer>B</answer>", "B"),
    ("the template opened it <answer>A</answer></think>B", "B"),
    ("<answer>B</answer><think>then it goes on", "B"),
    ("<think>\\boxed{1}</think>\\boxed{2} so \\boxed{{3}", "2"),
    ("\\boxed{1} or \\boxed{\\boxed{2}}", "\\boxed{2}"),
    ("\\boxed {a\\}b} c", "a\\}b"),
    ("\\boxed{1} <answer>2</answer>", "2"),
    ("<think>a</think>  text ", "text"),
    ("no tags at all", "no tags at all"),
    ("before <think>a</think>", None),
    ("<think>a</think>B<think>and on", None),
    ("<think>cut off B", None),
    ("<think>a</think><answer>17", None),
    ("<answer>17", None),
    ("<answer></answer>", ""),
    ("", None),
    (" \n ", None),
]


@pytest.mark.parametrize(("response", "answer"), CASES)
def test_strict(response: str, answer: str | None) -> None:
    assert extract(response) == answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer>A</answer> hmm, no. <answer>B", "B"),
        ("<think>a</think><answer>17", "17"),
        ("<think>the answer is B, but let me", None),
        ("<think>a</think><answer>17</answer>", "17"),
        ("<answer>B</answer><think>then it goes on", None),
    ],
)
def test_lenient(response: str, answer: str | None) -> None:
    assert extract(response, mode="lenient") == answer


@pytest.mark.parametrize(
    ("response", "answer", "anchored"),
    [
        ("Final Answer: a red car", "a red car", "a red car"),
        ("**Final Answer:** a red car", "a red car", "a red car"),
        ("<think>Final answer: a</think>So it goes. Therefore, the final answer is: b", "b", "b"),
        ("Final answer: a. No. Final answer: b", "b", "b"),
        ("<think>x</think><answer>The final answer is: c</answer>", "c", "c"),
        ("<think>x</think>It goes.\n<answer>a red car</answer> ok", "a red car", None),
        ("<think>x</think>a red car", "a red car", None),
        ("<think>Final answer: a", None, None),
        ("Final answer: ", None, None),
        ("the finalanswer: b", "the finalanswer: b", None),
    ],
)
def test_open_answers(response: str, answer: str | None, anchored: str | None) -> None:
    assert concluded(response) == answer
    assert concluded(response, anchored=True) == anchored


def test_response_that_starts_inside_the_reasoning() -> None:
    assert extract("draft <answer>A</answer>", opens_thinking=True) is None
    assert extract("draft <answer>A</answer></think><answer>B</answer>", opens_thinking=True) == "B"
    assert extract("<think>again</think>B", opens_thinking=True) == "B"


def test_configured_reasoning_tag() -> None:
    response = "<reason><answer>A</answer></reason><answer>B</answer> <answer>"
    assert extract("<reason><answer>A</answer>", reasoning_tag="reason") is None
    assert extract(response, reasoning_tag="reason") == "B"


def test_boxes_that_never_close() -> None:
    assert last_boxed("\\boxed{" * 3 + "1}") == "1"
    assert last_boxed("\\boxed{" * 3) is None
    assert last_boxed("\\{ \\boxed{2}") == "2"


def test_gold_goes_through_the_same_function() -> None:
    assert gold_text(Sample(uid="1", task="t", problem="", answer="<answer>B</answer>")) == "B"
    assert gold_text(Sample(uid="1", task="t", problem="", answer="4")) == "4"
    broken = Sample(uid="7", task="t", problem="", answer="<think>unclosed", origin="a.jsonl:3")
    with pytest.raises(BadGoldError, match=r"a\.jsonl:3.*'7'"):
        gold_text(broken)
