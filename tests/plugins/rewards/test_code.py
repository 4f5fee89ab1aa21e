"""Code: drawings, pages and programs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from evr1_core.api import BadGoldError, ConfigError
from evr1_core.api.sandbox import NotConfinedError, Sandbox
from evr1_core.api.workers import Failed
from evr1_core.testing.samples import HTML, PYTHON, SVG
from evr1_plugins.rewards import _html, _python, _svg
from evr1_plugins.rewards.code import Code, language, program

DOT = '<svg width="20" height="20"><circle cx="10" cy="10" r="5" fill="red"/></svg>'
HALF = '<svg viewBox="0 0 2 1"><rect width="1" height="1" fill="{}"/></svg>'
LEFT = HALF.format("black")


@pytest.fixture(name="code", scope="module")
def _code() -> Iterator[Code]:
    reward = Code()
    yield reward
    reward.close()


def of_drawings(guess: str, gold: str) -> float:
    left, right = _svg.drawing(guess), _svg.drawing(gold)
    assert left is not None
    assert right is not None
    return _svg.similarity(left, right)


def test_a_drawing_is_fitted_into_the_square() -> None:
    found = _svg.drawing(LEFT)
    assert found is not None
    ink = np.zeros((256, 256))
    ink[64:192, :128] = 255  # the sheet is twice as wide as high: 256 x 128, centred
    assert np.array_equal(found.pixels[3], ink)
    assert not found.pixels[:3].any()


@pytest.mark.parametrize(
    ("guess", "pixels"),
    [
        (LEFT, 1.0),
        (HALF.format("#333"), 1 - 0.2),  # 51 of 255
        (HALF.format("yellow"), 0.0),  # as far from black as white is, in the channel that differs most
        (LEFT.replace("<rect", '<rect x="1"'), 0.0),
        (LEFT.replace('width="1"', 'width="2"'), 0.5),
        ('<svg viewBox="0 0 2 1"><rect width="2" height="1" fill="white"/></svg>', 0.0),
    ],
)
def test_pixels(guess: str, pixels: float) -> None:
    assert of_drawings(guess, LEFT) == pytest.approx(0.7 * pixels + 0.3, abs=1e-6)


def test_a_wash_over_the_sheet_earns_no_more_than_what_the_drawing_covers() -> None:
    gold = '<svg viewBox="0 0 10 10"><rect width="2" height="5"/></svg>'  # a tenth
    for grey in ("fdfdfd", "f0f0f0", "cccccc", "808080", "000000"):
        strength = 1 - int(grey[:2], 16) / 255
        wash = f'<svg viewBox="0 0 10 10"><rect width="10" height="10" fill="#{grey}"/></svg>'
        pixels = 0.1 * strength / (0.1 + 0.9 * strength)  # what is shared, over what either has
        assert of_drawings(wash, gold) == pytest.approx(0.7 * pixels + 0.3, abs=2e-3)


def test_elements_count_too() -> None:
    assert of_drawings(LEFT.replace("</svg>", "<g/></svg>"), LEFT) == pytest.approx(0.7 + 0.3 * 2 / 3)
    assert of_drawings("<svg/>", LEFT) == 0.0
    assert of_drawings('<svg viewBox="0 0 2 1"><path d="M0 0h1v1h-1z"/></svg>', LEFT) == pytest.approx(0.7, abs=1e-6)


def test_white_on_nothing_is_a_drawing() -> None:
    assert of_drawings(HALF.format("white"), HALF.format("white")) == 1.0
    assert of_drawings("<svg/>", HALF.format("white")) == 0.0


def test_words_count_and_are_not_drawn() -> None:
    gold = '<svg><text x="5" y="20">Way out</text></svg>'
    assert of_drawings(gold, gold) == 1.0
    assert of_drawings(gold.replace("out", "in"), gold) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<svg",
        "<html/>",
        "a < b and c > d",
        '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg><text>&a;</text></svg>',
        '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg><text>&a;</text></svg>',
        "<svg>" + "<g>" * 150 + "</g>" * 150 + "</svg>",
        "<svg>" + "<g/>" * 20_000 + "</svg>",
        "\x00<svg/>",
        f'<?xml version="1.0" encoding="utf-7"{" " * 300}?>+ADw-svg/+AD4-',  # where another encoding could hide entities
        "<svg>\ud83d</svg",
    ],
)
def test_no_drawing(text: str) -> None:
    assert _svg.drawing(text) is None


def test_nothing_outside_is_drawn(tmp_path) -> None:
    picture = tmp_path / "p.svg"
    picture.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>')
    for element in ("image", "use", "feImage"):
        found = _svg.drawing(f'<svg width="9" height="9"><{element} width="9" height="9" href="{picture}"/></svg>')
        assert found is not None
        assert not found.pixels.any()


def of_pages(guess: str, gold: str) -> float:
    left, right = _html.page(guess), _html.page(gold)
    assert left is not None
    assert right is not None
    return _html.similarity(left, right)


def test_pages() -> None:
    gold = '<div class="a"><p>one two</p></div>'  # div, div class=a, p, div > p; two words
    assert of_pages(gold, gold) == 1.0
    assert of_pages("<!-- x -->\n<div class='a'>\n<p>one\ntwo</p></div>", gold) == 1.0
    assert of_pages('<div class="b"><p>one two</p></div>', gold) == pytest.approx(0.6 * 3 / 4 + 0.4)
    assert of_pages('<div class="a"><p>two</p></div>', gold) == pytest.approx(0.6 + 0.4 * 2 / 3)
    assert of_pages('<p>one two</p><div class="a"></div>', gold) == pytest.approx(0.6 * 6 / 7 + 0.4)
    assert of_pages("<hr>", gold) == 0.0
    assert of_pages("<br><hr>", "<br>") == pytest.approx(2 / 3)  # no text: elements alone


@pytest.mark.parametrize("text", ["", "a < b and c > d", "<madeup>x</madeup>", "&lt;p&gt;", "<p>" * 30_000])
def test_no_page(text: str) -> None:
    assert _html.page(text) is None


def of_programs(guess: str, gold: str) -> float:
    left, right = _python.rules(guess), _python.rules(gold)
    assert left is not None
    assert right is not None
    return _python.similarity(left, right)


def test_programs() -> None:
    assert of_programs("def f(w, h):\n  # size\n  return (w*h)", PYTHON) == 1.0
    assert of_programs(PYTHON.replace("*", "+"), PYTHON) == pytest.approx(7 / 9)  # of 9 nodes the product and its sign differ
    assert of_programs("x = 1", "y = 1") == 1.0
    assert of_programs("x = 1", "y = 2") == pytest.approx(2 / 3)  # assignment and name; the constant differs
    assert of_programs("x = len(y)", "x = sum(y)") < 1.0
    assert of_programs("x = True", "x = 1") < 1.0
    assert of_programs("import os", PYTHON) == 0.0


@pytest.mark.parametrize("text", ["", "# nothing", "a b", "x = '", "(" * 200 + ")" * 200, "\x00", "\ud83d", "9" * 9999])
def test_no_program(text: str) -> None:
    assert _python.rules(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "-" * 90_000 + "1",
        "not " * 20_000 + "1",
        "a." * 40_000 + "a",
        "1+" * 40_000 + "1",
        "lambda:" * 12_000 + "1",
        "{" * 50_000,
        "f(" * 40_000,
        "if a:\n" * 15_000,
        "".join(" " * i + "if a:\n" for i in range(400)) + " " * 400 + "a",
        "a if b else " * 8000 + "c",
        "a[" * 50 + "]" * 50 + "b" * 1000,
        "f'{" * 30_000,
        "x = '''" + "(" * 90_000 + "'''",
        "await " * 10_000 + "x",
        "a = " * 20_000 + "1",
        "x\\\n" * 30_000,
        "[a for a in " * 50 + "b" + "]" * 50,
        "(" * 50 + "a b" + ")" * 50,
        "f(" * 50 + "a b" + ")" * 50,
        "{a:" * 50 + "b c" + "}" * 50,
    ],
)
def test_hostile_programs_leave_the_trainer_alone(code, record, score, text: str) -> None:
    start = time.perf_counter()
    result = score(code, record("python", PYTHON), text)
    assert result.accuracy is not None
    assert 0.0 <= result.accuracy < 1.0
    assert time.perf_counter() - start < 5.0  # with the start of a worker in place of a killed one


@pytest.mark.parametrize(
    ("task", "gold", "answer", "accuracy"),
    [
        ("svg code", SVG, f"Here it is:\n```svg\n{SVG}\n```", 1.0),
        ("html code", HTML, HTML, 1.0),
        ("code", f"```python\n{PYTHON}```", PYTHON, 1.0),
        ("python", PYTHON, "", 0.0),
        ("python", PYTHON, "The area is width times height.", 0.0),
        ("svg code", SVG, None, 0.0),
    ],
)
def test_accuracy(code, record, score, task, gold, answer, accuracy) -> None:
    result = score(code, record(task, gold), answer)
    assert (result.accuracy, result.parsed) == (accuracy, accuracy == 1.0)


@pytest.mark.parametrize(("task", "gold"), [("svg code", HTML), ("html code", "no tags"), ("code", "a b")])
def test_broken_gold(code, record, score, task, gold) -> None:
    with pytest.raises(BadGoldError, match=task.removesuffix("code").strip() or "python"):
        score(code, record(task, gold), gold)


def test_a_drawing_without_end_is_cut_off(record, score) -> None:
    blurs = '<feTurbulence numOctaves="1000" baseFrequency="0.5"/><feGaussianBlur stdDeviation="50"/>' * 20
    bomb = f'<svg width="9" height="9"><filter id="f">{blurs}</filter><rect width="9" height="9" filter="url(#f)"/></svg>'
    reward = Code(time_limit=0.5)
    try:
        result = score(reward, record("svg code", SVG), bomb)
        assert (result.accuracy, result.parsed) == (0.0, False)
        assert "no result within 0.5 s of processor time" in result.note
        assert score(reward, record("svg code", SVG), SVG).accuracy == 1.0
        with pytest.raises(BadGoldError, match="can be compared"):
            score(reward, record("svg code", bomb), SVG)
    finally:
        reward.close()


def test_a_gold_is_broken_only_when_it_fails_again(record, score, monkeypatch) -> None:
    late, stalled, crash = Failed("time", "late"), Failed("stalled", "held up"), Failed("crash", "gone")
    fine = {"similarity": 1.0}
    reward = Code()
    for replies, accuracy in [
        ([late, late, fine], 0.0),
        ([crash, fine], 0.0),
        ([late, stalled], 0.0),
        ([stalled], None),
        ([fine], 1.0),
    ]:
        given = iter(replies)
        monkeypatch.setattr(reward._pool, "ask", lambda request, given=given: next(given))
        assert score(reward, record("svg code", SVG), SVG).accuracy == accuracy
        assert next(given, None) is None
    given = iter([late, late, crash])
    monkeypatch.setattr(reward._pool, "ask", lambda request: next(given))
    with pytest.raises(BadGoldError, match="gone"):
        score(reward, record("svg code", SVG), SVG)


def test_a_busy_machine_stops_no_run(record, score) -> None:
    reward = Code(time_limit=0.5)
    try:
        (worker,) = _workers_of(reward, record, score)
        os.kill(worker, signal.SIGSTOP)
        threading.Timer(1.5, os.kill, (worker, signal.SIGCONT)).start()
        assert score(reward, record("svg code", SVG), SVG).accuracy == 1.0  # three times the limit later
    finally:
        reward.close()


def _workers_of(reward: Code, record, score) -> list[int]:
    score(reward, record("svg code", SVG), SVG)
    return [worker.process.pid for worker in reward._pool._workers]


def test_language(record) -> None:
    assert language(record("code", "")) == "python"
    assert language(record("code", "", subtype="svg")) == "svg"
    assert language(record("code", "", language="HTML")) == "html"
    assert language(record("svg code", "", subtype="html")) == "svg"
    with pytest.raises(BadGoldError, match="cobol"):
        language(record("code", "", language="cobol"))


def test_program() -> None:
    assert program("```py\na\n```") == "a\n"
    assert program("a") == "a"
    assert program("```\na\n```\n```\nb\n```") == "```\na\n```\n```\nb\n```"


TESTS = ["assert area(2, 3) == 6", "assert area(0, 3) == 0", "assert area(-1, 1) == -1"]


@pytest.fixture(name="executing", scope="module")
def _executing() -> Iterator[Code]:
    try:
        reward = Code(execute=True, sandbox=Sandbox(seconds=3.0))
    except ConfigError as error:
        pytest.skip(str(error))
    yield reward
    reward.close()


@pytest.mark.parametrize(
    ("answer", "accuracy"),
    [
        (PYTHON, 1.0),
        (f"```python\n{PYTHON}```", 1.0),
        ("area = lambda w, h: abs(w * h)", 2 / 3),
        (PYTHON + "import sys\nsys.exit(0)", 0.0),
        (PYTHON + "import os\nos._exit(0)", 0.0),
        ("def area(w, h):\n if w < 0:\n  raise SystemExit(0)\n return w * h", 2 / 3),
        ("def area(w, h):\n while w < 0: pass\n return w * h", 2 / 3),
        ("print(open('/tmp/stdin').read())", 0.0),
        ("import os\nos.system('true')\nraise KeyboardInterrupt", 0.0),
        ("a b", 0.0),
        ("\ud83d", 0.0),
        ("", 0.0),
    ],
)
def test_executed(executing, record, score, answer, accuracy) -> None:
    result = score(executing, record("python", PYTHON, tests=TESTS), answer)
    assert result.accuracy == pytest.approx(accuracy)
    assert result.parsed == bool(answer)


def test_executed_only_when_asked(code, executing, record, score) -> None:
    assert score(code, record("python", PYTHON, tests=["assert area(1, 1) == 2"]), PYTHON).accuracy == 1.0
    assert score(executing, record("python", PYTHON, tests=["assert area(1, 1) == 2"]), PYTHON).accuracy == 0.0
    assert score(executing, record("python", PYTHON), PYTHON).note == "compared as python"
    assert score(executing, record("svg code", SVG, tests=TESTS), SVG).note == "compared as svg"
    assert score(executing, record("python", PYTHON, tests=TESTS[0]), PYTHON).note == "passed 1 of 1 tests"
    with pytest.raises(BadGoldError, match="tests"):
        score(executing, record("python", PYTHON, tests=[1]), PYTHON)


def test_no_execution_without_a_sandbox(monkeypatch) -> None:
    def refuse() -> str:
        raise NotConfinedError("not here")

    monkeypatch.setattr("evr1_core.api.sandbox.mode", refuse)
    with pytest.raises(ConfigError, match=r"rewards\.code\.options\.sandbox: not here"):
        Code(execute=True)
