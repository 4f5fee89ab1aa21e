"""Python programs: comparison of syntax trees. Nothing is executed. Runs in a worker process."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections import Counter
from functools import lru_cache

from evr1_plugins.rewards._trees import LONGEST, f1

DEEPEST = 60  # nested brackets, or levels of indentation
_TOKEN = re.compile(r"#[^\n]*|'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[()\[\]{}]")
_KNOWN = frozenset(dir(builtins))
_CONTEXT = (ast.Load, ast.Store, ast.Del)
Rules = Counter[tuple[str, ...]]


@lru_cache(maxsize=64)
def rules(text: str) -> Rules | None:
    """How often each node with its children occurs in the syntax tree; None when the text is no Python, or nested too deeply.

    Names that the program gives are numbered by first use, so that renaming changes nothing; those of builtins and attributes
    count as they are, and so do constants. Positions, comments and layout do not.
    """
    if len(text) > LONGEST or not text.strip() or _depth(text) > DEEPEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in what is compared
            tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    names: dict[str, str] = {}
    found: Rules = Counter()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _CONTEXT)]
        found[(_label(node, names), *(type(child).__name__ for child in children))] += 1
        waiting += reversed(children)
    del found[("Module", *(type(child).__name__ for child in tree.body))]
    return found or None


def similarity(guess: Rules, gold: Rules) -> float:
    """F1 of the nodes with their children."""
    return f1(guess, gold)


def _label(node: ast.AST, names: dict[str, str]) -> str:
    label = type(node).__name__
    for name, value in ast.iter_fields(node):
        if name == "value" and isinstance(node, ast.Constant):
            label += f" {type(value).__name__} {str(value)[:200] if not isinstance(value, int) else hash(value)}"
        elif isinstance(value, str) and not isinstance(node, ast.Constant):
            own = name in ("id", "arg", "name") and value not in _KNOWN
            label += f" {names.setdefault(value, f'v{len(names)}') if own else value}"
    return label


def _depth(text: str) -> int:
    depth = deepest = 0
    for token in _TOKEN.findall(text):
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        deepest = max(deepest, depth)
    return deepest
