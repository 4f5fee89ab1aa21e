import io
from pathlib import Path

import pytest
from rich.console import Console as Terminal

from evr1_core.registry.loading import load_class, resolve

METRICS = {"critic/score/mean": 0.25, "response_length/mean": 17.0, "timing_s/step": 4.0, "timing_s/gen": 3.0, "actor/lr": 1e-6}


@pytest.fixture
def console(monkeypatch):
    """The tracker, writing to a text: to a terminal of 120 columns, or to none."""

    def make(terminal, **options):
        tracker = load_class(resolve("trackers", "console"))(**options)
        out = io.StringIO()
        tracker._terminal = Terminal(file=out, force_terminal=terminal, width=120, color_system=None)
        return tracker, out

    return make


def test_plain_lines_each_few_steps(console):
    tracker, out = console(False, every=2)
    tracker.start({}, Path("runs/[b]x"), 5)
    for step in range(1, 6):
        tracker.log(step, METRICS)
    lines = out.getvalue().splitlines()
    assert lines[0] == "run folder: runs/[b]x"
    assert [line.split()[1] for line in lines[1:]] == ["2/5", "4/5", "5/5"]
    assert all("reward 0.250" in line and "length 17.000" in line and " s left" in line for line in lines[1:])


def test_a_validation_is_always_shown(console):
    tracker, out = console(False, every=10)
    tracker.start({}, Path("out"), 20)
    tracker.log(0, {"val/accuracy": 0.5})
    tracker.log(3, {**METRICS, "val/accuracy": 0.75})
    assert [line.split()[1] for line in out.getvalue().splitlines()[1:]] == ["0/20", "3/20"]
    assert "val accuracy 0.750" in out.getvalue()


def test_a_progress_bar_on_a_terminal(console):
    tracker, out = console(True)
    tracker.start({}, Path("out"), 4)
    tracker.log(1, METRICS)
    tracker._progress.refresh()
    tracker.close()
    shown = out.getvalue()
    assert "1/4" in shown
    assert "reward 0.250" in shown
    assert "length 17.000" in shown
    assert "left" in shown


def test_the_closing_table(console):
    tracker, out = console(False)
    tracker.start({}, Path("out"), 2)
    tracker.log(0, {"val/accuracy": 0.125, "val/counting/accuracy": 0.5})
    tracker.log(1, METRICS)
    tracker.log(2, {**METRICS, "critic/score/mean": 0.75, "val/accuracy": 0.875})
    tracker.close()
    table = {line.split("│")[1].strip(): line for line in out.getvalue().splitlines() if line.startswith("│")}
    assert [cell.strip() for cell in table["critic/score/mean"].split("│")[1:4]] == ["critic/score/mean", "0.25", "0.75"]
    assert "0.125" in table["val/accuracy"]
    assert "0.875" in table["val/accuracy"]
    assert "val/counting/accuracy" in table
    assert "6.0" in table["seconds: gen"]
    assert "75%" in table["seconds: gen"]
    assert out.getvalue().splitlines()[-1] == "results: out"


def test_a_run_that_ends_before_its_first_step(console):
    tracker, out = console(True)
    tracker.start({}, Path("out"), 2)
    tracker.close()
    tracker.close()
    assert "first and last values" not in out.getvalue()
