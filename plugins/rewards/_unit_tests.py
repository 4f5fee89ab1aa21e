"""Runs a program against the tests of its record, in the sandbox.

What a test expects never enters the sandbox: a program reports values, and they are compared outside, so that a program which knows
how it is tested gains nothing by it.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from evr1_core.api import BadGoldError, Sample
from evr1_core.api.sandbox import Sandbox
from evr1_plugins.rewards import _reporting

FORMS = 'made of tests: \'assert CALL == LITERAL\', {"call": ..., "expected": ...} or {"input": ..., "output": ...}'
MOST = 100  # tests of a record
MOST_LATE = 3  # inputs that reach the time limit; the tests after these fail unseen, or one answer could take minutes
DEEPEST = 20  # containers within containers of a value


@frozen
class Test:
    """A call and the value it should have (``truth``: any value of that truth), or an input and the output it should give."""

    call: str = ""
    expected: Any = None
    truth: bool | None = None
    input: str = ""
    output: str = ""


def read_tests(sample: Sample) -> tuple[Test, ...]:
    """The tests of a record (``tests`` of its extra fields); none: (). Raises BadGoldError for a form that cannot be checked from
    outside the program.
    """
    given = sample.extra.get("tests") or ()
    if isinstance(given, str):
        given = [line for line in given.splitlines() if line.strip()]
    if not isinstance(given, list | tuple) or len(given) > MOST:
        raise BadGoldError(sample, FORMS)
    tests = [_read(test) for test in given]
    if any(test is None for test in tests):
        raise BadGoldError(sample, FORMS)
    return tuple(test for test in tests if test is not None)


def _read(test: Any) -> Test | None:
    if isinstance(test, str):
        return _asserted(test)
    if not isinstance(test, dict):
        return None
    if isinstance(test.get("call"), str) and "expected" in test and _expression(test["call"]):
        return Test(call=test["call"], expected=_plain(test["expected"]))
    if isinstance(test.get("output"), str) and isinstance(test.get("input", ""), str):
        return Test(input=test.get("input", ""), output=test["output"])
    return None


def _asserted(text: str) -> Test | None:
    """``assert CALL == LITERAL``, ``assert CALL`` or ``assert not CALL``; anything else would be decided inside the program."""
    try:
        (statement,) = ast.parse(text.strip()).body
        if not isinstance(statement, ast.Assert):
            return None
        match statement.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                return Test(call=ast.unparse(left), expected=_plain(ast.literal_eval(right)))
            case ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call):
                return Test(call=ast.unparse(call), truth=False)
            case ast.Call() as call:
                return Test(call=ast.unparse(call), truth=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return None


def _expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(_reporting.plain(value, DEEPEST)))


@cache
def _driver() -> str:
    return Path(_reporting.__file__).read_text("utf-8")


def num_passed(source: str, tests: Sequence[Test], sandbox: Sandbox) -> int:
    """How many tests a program passes. All calls share one run; each input has its own. Raises NotConfinedError."""
    calls = [test for test in tests if test.call]
    passed = sum(_holds(test, told) for test, told in zip(calls, _values(source, calls, sandbox), strict=False))
    late = 0
    for test in tests:
        if not test.call and late < MOST_LATE:
            run = sandbox.run(source, test.input)
            late += run.status == "time"
            passed += run.status == "ok" and _lines(run.stdout) == _lines(test.output)
    return passed


def _values(source: str, calls: Sequence[Test], sandbox: Sandbox) -> list[Any]:
    if not calls:
        return []
    task = {"source": source, "calls": [test.call for test in calls], "depth": DEEPEST}
    run = sandbox.run(_driver(), json.dumps(task))
    values = []
    for line in run.stdout.splitlines():
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            values.append(None)
    return values


def _holds(test: Test, told: Any) -> bool:
    if test.truth is None:
        return _same(told, test.expected)
    readable = isinstance(told, list) and len(told) == 2 and told[0] not in ("raised", "other")
    return readable and (told[1] not in (None, False, "", "0", "0.0", "-0.0", [])) == test.truth


def _same(told: Any, expected: Any) -> bool:
    """Whether two written values are equal; floats, and a float and a whole number, to nine digits."""
    if not (isinstance(told, list) and isinstance(expected, list) and len(told) == len(expected)):
        return type(told) is type(expected) and bool(told == expected)
    kinds = (told[0], expected[0]) if len(told) == 2 and isinstance(told[0], str) else ()
    if "float" in kinds and set(kinds) <= {"int", "float"}:
        return _close(told[1], expected[1])
    return all(map(_same, told, expected))


def _close(told: Any, expected: Any) -> bool:
    try:
        return math.isclose(float(told), float(expected), rel_tol=1e-9, abs_tol=1e-12)
    except (TypeError, ValueError, OverflowError):
        return False


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]
