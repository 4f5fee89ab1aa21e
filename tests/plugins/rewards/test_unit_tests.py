"""Programs against the tests of their record: what passes, what fails, and what tries to pass without solving anything."""

from __future__ import annotations

from typing import Any

import pytest

from evr1_core.api import BadGoldError, Sample, sandbox
from evr1_core.api.sandbox import NotConfinedError, Run, Sandbox
from evr1_plugins.rewards._unit_tests import num_passed, read_tests

BOX = Sandbox(seconds=20.0)


@pytest.fixture(autouse=True, scope="module")
def _confined() -> None:
    try:
        sandbox.mode()
    except NotConfinedError as error:
        pytest.skip(str(error))


def record(tests: Any) -> Sample:
    return Sample(uid="r1", task="python", problem="", answer="", origin="a.jsonl:1", extra={"tests": tests})


def passed(source: str, tests: Any, box: Sandbox = BOX) -> int:
    return num_passed(source, read_tests(record(tests)), box)


@pytest.mark.parametrize(
    ("source", "tests", "number"),
    [
        ("def f(x): return x + 1", ["assert f(1) == 2", "assert f(-1) == 0", "assert f(1) == 3"], 2),
        ("def f(x): return x + 1", "assert f(1) == 2\nassert f(2) == 3\n", 2),
        ("def f(x): return [x, (x, None)]", ["assert f(1) == [1, (1, None)]", "assert f(1) == [1, [1, None]]"], 1),
        ("def f(): return {'a': {1, 2}}", [{"call": "f()", "expected": {"a": 1}}, "assert f() == {'a': {2, 1}}"], 1),
        ("def f(): return 0.1 + 0.2", ["assert f() == 0.3", {"call": "f()", "expected": 0.3}, "assert f() == 0.31"], 2),
        ("def f(): return 4 / 2", ["assert f() == 2", "assert f() is True"], 1),
        ("def f(x): return x > 1", ["assert f(2)", "assert not f(1)", "assert f(1)"], 2),
        ("print('hello')\nn = 3", ["assert n == 3"], 1),
        (
            "print(int(input()) * 2)",
            [{"input": "4\n", "output": "8"}, {"input": "5", "output": "10\n"}, {"input": "x", "output": "8"}],
            2,
        ),
        ("def f(): raise ValueError", ["assert f() == 1"], 0),
        ("def f(", ["assert f() == 1"], 0),
        ("", ["assert f() == 1"], 0),
        ("def f(): return float('nan')", ["assert f() == 1.0"], 0),
        ("def f(): return 10 ** 5000", ["assert f() == 1.0"], 0),
    ],
)
def test_passed(source: str, tests: Any, number: int) -> None:
    assert passed(source, tests) == number


CHEATS = [
    "import sys; sys.exit(0)",
    "import os; os._exit(0)",
    'print(\'["int", "2"]\')',
    "class Any:\n    def __eq__(self, other): return True\n    def __bool__(self): return True\ndef f(x): return Any()",
    "class Zero(int):\n    def __eq__(self, other): return True\ndef f(x): return Zero()",
    "class Name(str):\n    def __eq__(self, other): return True\ndef f(x): return Name('2')",
    "import builtins\nbuiltins.bool = lambda x: True\nbuiltins.repr = lambda x: ''\ndef f(x): return None",
    "import sys\nfor name, frame in sys._current_frames().items():\n    print(frame.f_back.f_locals)\ndef f(x): return 'expected'",
    "import json\njson.dumps = lambda value: 'true'\ndef f(x): return 1",
    "import gc\ndef f(x): return [one for one in gc.get_objects() if isinstance(one, dict) and 'expected' in one]",
    "open('source', 'w').write('')\ndef f(x): return 3",
]


@pytest.mark.parametrize("source", CHEATS)
def test_cheats_earn_nothing(source: str) -> None:
    assert passed(source, ["assert f(1) == 2", {"call": "f(10)", "expected": 20}]) == 0


def test_one_that_hangs_keeps_what_it_passed() -> None:
    source = "def f(x):\n    while x > 1: pass\n    return 2"
    assert passed(source, ["assert f(1) == 2", "assert f(2) == 4"], Sandbox(seconds=2.0)) == 1


def test_many_inputs_that_hang_do_not_take_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def late(self: Sandbox, source: str, stdin: str = "") -> Run:
        ran.append(stdin)
        return Run(status="ok" if stdin == "1" else "time", stdout="1\n", stderr="")

    monkeypatch.setattr(Sandbox, "run", late)
    tests = [{"input": str(number), "output": "1"} for number in (1, 2, 3, 4, 1, 1)]
    assert passed("", tests) == 1
    assert ran == ["1", "2", "3", "4"]


def test_tells_a_call_from_the_programs_own_main() -> None:
    assert passed("n = 1\nif __name__ == '__main__':\n    n = 2", ["assert n == 1"]) == 1


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(1) == g(1)",
        ["f(1) == 2"],
        ["assert abs(f(1) - 2) < 1e-6"],
        ["assert f(1) == 2; import os"],
        [{"call": "f(", "expected": 1}],
        [{"call": "f()"}],
        [{"input": "1"}],
        [7],
        7,
        {"call": "f()", "expected": 1},
        ["assert f(1) == 2"] * 1000,
    ],
)
def test_tests_that_cannot_be_checked_are_an_error(tests: Any) -> None:
    with pytest.raises(BadGoldError, match=r"a\.jsonl:1: record 'r1'"):
        read_tests(record(tests))


@pytest.mark.parametrize("tests", [None, [], ""])
def test_no_tests(tests: Any) -> None:
    assert read_tests(record(tests)) == ()
