import json
import math

import pytest

from evr1_core.registry.loading import load_class, resolve

ROWS = [
    {
        "uid": "a:0",
        "prompt": "<video>\nWhat?",
        "response": "<think>x</think>\n<answer>B</answer>",
        "reward": 0.123456,
        "offline": False,
    },
    {"uid": "a:1", "response": "half \ud83d", "reward": 1.0},
]


@pytest.fixture
def tracker(tmp_path):
    made = load_class(resolve("trackers", "jsonl"))()
    made.start({}, tmp_path, 3)
    yield made
    made.close()


def lines(folder):
    return [json.loads(line, parse_constant=pytest.fail) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_each_step_is_on_disk_at_once(tracker, tmp_path):
    tracker.log(1, {"a/b": 0.5, "c": 3.0})
    assert lines(tmp_path) == [{"step": 1, "a/b": 0.5, "c": 3.0}]
    tracker.log(2, {})
    assert lines(tmp_path) == [{"step": 1, "a/b": 0.5, "c": 3.0}, {"step": 2}]


def test_what_is_not_finite_is_null(tracker, tmp_path):
    tracker.log(1, {"nan": math.nan, "inf": math.inf, "low": -math.inf, "zero": 0.0})
    assert lines(tmp_path) == [{"step": 1, "nan": None, "inf": None, "low": None, "zero": 0.0}]


def test_a_second_run_into_the_folder_is_appended(tracker, tmp_path):
    tracker.log(1, {"a": 1.0})
    tracker.close()
    again = load_class(resolve("trackers", "jsonl"))()
    again.start({}, tmp_path, 3)
    again.log(2, {"a": 2.0})
    again.close()
    assert [row["step"] for row in lines(tmp_path)] == [1, 2]


def test_dumps_for_people_and_for_programs(tracker, tmp_path):
    tracker.rows(20, "responses", ROWS)
    text = (tmp_path / "samples" / "responses-20.txt").read_text("utf-8")
    assert text.startswith(
        "uid: a:0\nprompt:\n    <video>\n    What?\nresponse:\n    <think>x</think>\n    <answer>B</answer>\nreward: 0.1235\n"
    )
    assert "response: half \\ud83d\n" in text
    rows = [json.loads(line) for line in (tmp_path / "samples" / "responses-20.jsonl").read_text("utf-8").splitlines()]
    assert rows == ROWS
    assert sorted(path.name for path in (tmp_path / "samples").iterdir()) == ["responses-20.jsonl", "responses-20.txt"]
