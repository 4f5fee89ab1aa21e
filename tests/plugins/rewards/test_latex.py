"""The outer structure of mathematical answers."""

from __future__ import annotations

import pytest

from evr1_plugins.rewards._latex import LONGEST, Node, clean, split, structure


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("$5$.", "5"),
        ("**73**", "73"),
        ("\\(\\dfrac{1}{2}\\)", "\\frac{1}{2}"),
        ("\\boxed{12}", "12"),
        ("The answer is 42.", "42"),
        ("x² − 1", "x^{2} - 1"),
        ("1e-9", "1 \\times 10^{-9}"),
        ("1 1/2", "(1+\\frac{1}{2})"),
        ("4√2", "4\\sqrt{2}"),
        ("½", "1/2"),
        ("Adding both of these we get $6 \\cdot 7$ at last", "6 \\cdot 7"),
        ("There are 42 apples in that box", "42"),
        ("There are 41 or maybe 42 apples in that box", None),
        ("Adding both of these gives $6$ or perhaps $7$ at last", None),
        ("no number is to be found here", None),
        ("1" * (LONGEST + 1), None),
    ],
)
def test_clean(text: str, cleaned: str | None) -> None:
    assert clean(text) == cleaned


def leaf(text: str) -> Node:
    return Node("expression", text)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("4\\sqrt{2}", leaf("4\\sqrt{2}")),
        ("1,234", leaf("1234")),
        ("1, 234", Node("set", "", (leaf("1"), leaf("234")))),
        ("1331 and 1728", Node("set", "", (leaf("1331"), leaf("1728")))),
        ("\\{1, 2\\}", Node("set", "{}", (leaf("1"), leaf("2")))),
        ("(1, 2]", Node("sequence", "(]", (leaf("1"), leaf("2")))),
        ("(a+b)(c+d)", leaf("(a+b)(c+d)")),
        ("f(1,2)", leaf("f(1,2)")),
        ("x = 5", Node("equation", "", (leaf("x"), leaf("5")))),
        ("x \\le 5", leaf("x \\le 5")),
        ("x \\in [1,2]", Node("sequence", "[]", (leaf("1"), leaf("2")))),
        ("\\pm 2", Node("set", "", (leaf("+ 2"), leaf("- 2")))),
        ("\\text{East}", Node("words", "east")),
        ("\\text{A}", leaf("A")),
        ("101_{2}", Node("words", "101_2")),
        ("(", leaf("(")),
        (",", leaf(",")),
    ],
)
def test_structure(text: str, node: Node) -> None:
    assert structure(text) == node


def test_split_leaves_brackets_whole() -> None:
    import re

    assert split("(a,b),c,{d,e}", re.compile(",")) == ["(a,b)", "c", "{d,e}"]


def test_depth_is_bounded() -> None:
    node, depth = structure("(1," * 300 + "1" + ")" * 300), 0
    while node.parts:
        node, depth = node.parts[-1], depth + 1
    assert depth < 12
