"""Truth values: rewards.md (strict) and benchmarks.md 5.3 (lenient)."""

from __future__ import annotations

import pytest

from evr1_core.api.answers import truth

STRICT = [
    ("Yes, a notice board is visible.", True),
    ("yes", True),
    ("**Yes**", True),
    ("True", True),
    ("1", True),
    ("Correct.", True),
    ("是", True),
    ("是的，有一只猫", True),
    ("はい。", True),
    ("Y", True),
    ("No.", False),
    ("false", False),
    ("0", False),
    ("Incorrect!", False),
    ("否", False),
    ("いいえ、違います", False),
    ("No, there is none", False),
    ("Yes, no doubt about it", True),
    ("The answer is yes.", True),
    ("", None),
    ("yes and no", None),
    ("yes/no", None),
    ("Yes, no", None),
    ("Yes. No.", None),
    ("No, or yes", None),
    ("No one is there", None),
    ("Yes it did", None),
    ("notice", None),
    ("I know it", None),
    ("I do not know", None),
    ("It is not true", None),
    ("10", None),
    ("Yes. The answer is no.", None),
    ("Yes; however false", None),
]


@pytest.mark.parametrize(("answer", "value"), STRICT)
def test_strict(answer: str, value: bool | None) -> None:
    assert truth(answer) is value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes, it did", True),
        ("Yes it did", True),
        ("No.", False),
        ("N", False),
        ("I do not know", None),
        ("I know it", None),
        ("Yes, though some say no", True),
        ("yes, hmm. The answer is no", False),
        ("I would say yes", True),
        ("I would say yes or no", None),
    ],
)
def test_lenient(reply: str, value: bool | None) -> None:
    assert truth(reply, mode="lenient") is value
