"""Whether two mathematical answers are equal, by `math-verify`. Runs in a worker process, killed when it takes too long."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from evr1_plugins.rewards._latex import Node, clean, is_name, structure

TINY = 1e-5  # below it, six decimals cannot tell numbers apart
LARGEST_SET = 24
# What SymPy raises for expressions that it cannot handle: they are not equal to anything.
_REFUSALS = (ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError)
logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # its own time limits are off, of which it warns

_READ = LatexExtractionConfig(
    normalization_config=NormalizationConfig(
        basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="none", equations=False
    )
)


def compare(gold: str, answer: str) -> dict[str, bool]:
    """``gold``: whether the gold can be read; ``parsed``: whether the answer can; ``equal``."""
    wanted = _structured(gold)
    if wanted is None:
        return {"gold": False, "parsed": False, "equal": False}
    given = _structured(answer)
    if given is None:
        return {"gold": True, "parsed": False, "equal": False}
    try:
        same = equal(wanted, given)
    except _REFUSALS:
        same = False
    return {"gold": True, "parsed": True, "equal": same}


def _structured(text: str) -> Node | None:
    cleaned = clean(text)
    node = structure(cleaned) if cleaned else None
    return node if node is not None and _readable(node) else None


def _readable(node: Node) -> bool:
    if node.kind == "expression":
        return _value(node.text) is not None
    return all(map(_readable, node.parts))


@lru_cache(maxsize=512)
def _value(text: str) -> Any:
    """The expression as SymPy has it, or None."""
    found = parse(f"${text}$", [_READ], fallback_mode="no_fallback", parsing_timeout=None)
    return _with_unit(found[0]) if found and not isinstance(found[0], str) else None


def _with_unit(value: Any) -> Any:
    """The expression with a free ``i`` as the imaginary unit, where that makes sense."""
    free = {symbol: sympy.I for symbol in value.free_symbols if symbol.name == "i"}
    if not free or value.has(sympy.Derivative):
        return value
    try:
        return value.xreplace(free)
    except (TypeError, ValueError):  # an inequality or an interval of it
        return value


def equal(gold: Node, guess: Node) -> bool:
    """Sets without order, sequences and intervals in order, equations as a whole, expressions by their value."""
    if gold.kind == "set" and len(gold.parts) == 1:
        return equal(gold.parts[0], guess)
    if guess.kind == "set" and len(guess.parts) == 1:
        return equal(gold, guess.parts[0])
    if gold == guess:
        return True
    if gold.kind == "equation" or guess.kind == "equation":
        return _equations(gold, guess)
    if gold.kind == guess.kind == "expression":
        return _values(_value(gold.text), _value(guess.text))
    if gold.kind == guess.kind and gold.kind in ("set", "union"):
        return _sets(gold.parts, guess.parts)
    if gold.kind == "sequence" and (guess.kind, guess.text) in (("sequence", gold.text), ("set", "")):
        # a list without brackets may stand for a tuple, in its order
        return (guess.kind == "sequence" or gold.text == "()") and _sequences(gold.parts, guess.parts)
    if {gold.kind, guess.kind} <= {"expression", "sequence", "union"}:
        return _regions(gold, guess)
    return False


def _sets(gold: Sequence[Node], guess: Sequence[Node]) -> bool:
    wanted, given = _named_alike(gold, guess)
    if len(wanted) != len(given) or len(wanted) > LARGEST_SET:
        return False
    left = list(given)
    for node in wanted:
        found = next((other for other in left if equal(node, other)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _named_alike(gold: Sequence[Node], guess: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Members once each; where all of one side read ``x = ...`` and none of the other, the values alone."""
    wanted, given = list(dict.fromkeys(gold)), list(dict.fromkeys(guess))
    if _all_name_one(wanted) and not any(node.kind == "equation" for node in given):
        wanted = [node.parts[-1] for node in wanted]
    elif _all_name_one(given) and not any(node.kind == "equation" for node in wanted):
        given = [node.parts[-1] for node in given]
    return wanted, given


def _all_name_one(nodes: Sequence[Node]) -> bool:
    named = all(node.kind == "equation" and is_name(node.parts[0]) for node in nodes)
    return named and len({node.parts[0] for node in nodes}) == 1


def _sequences(gold: Sequence[Node], guess: Sequence[Node]) -> bool:
    return len(gold) == len(guess) and all(map(equal, gold, guess))


def _equations(gold: Node, guess: Node) -> bool:
    if gold.kind == guess.kind:
        return _as_a_whole(gold.parts, guess.parts)
    if gold.kind == "equation":  # x = 5 asks for 5
        return is_name(gold.parts[0]) and equal(gold.parts[-1], guess)
    first, last = guess.parts[0], guess.parts[-1]
    if is_name(first):  # x = 5 answers 5; x = 2 + 3 = 5 does too
        return equal(gold, last)
    return all(equal(side, last) for side in guess.parts) and equal(gold, last)


def _as_a_whole(gold: Sequence[Node], guess: Sequence[Node]) -> bool:
    """Whether two equations say the same: the same name has the same value, or the differences of the sides are proportional."""
    if gold[0] == guess[0] and is_name(gold[0]):
        return equal(gold[-1], guess[-1])
    if any(side.kind != "expression" for side in (gold[0], gold[-1], guess[0], guess[-1])):
        return False
    sides = [_value(side.text) for side in (gold[0], gold[-1], guess[0], guess[-1])]
    if not all(isinstance(side, sympy.Expr) for side in sides):
        return False
    left, right = sides[0] - sides[1], sides[2] - sides[3]
    if left.free_symbols != right.free_symbols or not left.free_symbols:
        return False
    ratio = sympy.simplify(left / right)
    return bool(ratio.is_number and ratio.is_finite and not ratio.is_zero)


def _values(gold: Any, guess: Any) -> bool:
    if gold is None or guess is None or _empty(gold) != _empty(guess):
        return False
    if isinstance(gold, sympy.Expr) and isinstance(guess, sympy.Expr) and gold.is_number and guess.is_number:
        close = _tiny(gold, guess)
        if close is not None:
            return close
    return bool(verify([gold], [guess], timeout_seconds=None))


def _tiny(gold: sympy.Expr, guess: sympy.Expr) -> bool | None:
    """Numbers close to 0 compared relatively; None for larger ones, which `math-verify` rounds to six decimals."""
    left, right = (complex(sympy.N(number.doit(), 30, maxn=1000)) for number in (gold, guess))
    size = max(abs(left), abs(right))
    return abs(left - right) <= 1e-6 * size if size < TINY else None


def _regions(gold: Node, guess: Node) -> bool:
    """An inequality against an interval, or a union against another form of it."""
    left, right = _value(_written(gold)), _value(_written(guess))
    if left is None or right is None or _empty(left) or _empty(right):  # reversed ends make an empty set, equal to any other
        return False
    return bool(verify([left], [right], timeout_seconds=None, allow_set_relation_comp=True))


def _written(node: Node) -> str:
    parts = [_written(part) for part in node.parts]
    if node.kind == "union":
        return " \\cup ".join(parts)
    return f"{node.text[0]}{', '.join(parts)}{node.text[1]}" if node.kind == "sequence" else node.text


def _empty(value: Any) -> bool:
    return isinstance(value, sympy.Set) and value.is_empty is True
