"""VideoReasonBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, PromptStyle, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.video_reason_bench import VideoReasonBench

ROW = {
    "video": "card/state2_op9_end.mp4",
    "question": "What cards are in `pile0`?",
    "answer": "9 of Hearts, 6 of Spades",
    "dim": "order_state",
    "num_state": 2,
    "num_operation": 9,
    "visible_time": "end",
    "states": [],
    "actions": [],
}
CHIP = {**ROW, "video": "state1_op10_start.mp4", "dim": "prediction_state", "num_state": 1, "num_operation": 10, "answer": "None"}
SIMULATED = {**CHIP, "dim": "prediction_operation", "answer": None}


@pytest.fixture
def items(release):
    return release(VideoReasonBench(), {"questions/card.json": {"0": ROW}, "questions/chip.json": {"240": CHIP}})


def test_real_records(records) -> None:
    items = records(VideoReasonBench())
    check_benchmark(VideoReasonBench(), items)
    assert (len(items), items[0].judge) == (16, "complete")
    assert items[0].groups == {"demo": ("card",), "operations": ("5-9",)}
    assert items[2].groups == {"demo": ("grid",), "operations": ("10-14",)}


def test_official_rows(items) -> None:
    own = VideoReasonBench()
    check_benchmark(own, items)
    card, chip = items
    assert (card.source_id, card.video, card.gold, card.judge) == (
        "0",
        "card/state2_op9_end.mp4",
        "9 of Hearts, 6 of Spades",
        "complete",
    )
    assert (chip.source_id, chip.video, chip.gold) == ("240", "chip/state1_op10_start.mp4", "None")  # a real one
    assert card.groups == {
        "level": ("2",),
        "skill": ("infer_state",),
        "states": ("2",),
        "demo": ("card",),
        "operations": ("5-9",),
    }
    assert (chip.groups["level"], chip.groups["skill"], chip.groups["operations"]) == (("3",), ("prediction_state",), ("10-14",))


def test_what_needs_a_simulation_is_left_out_and_counted(tmp_path) -> None:
    folder = tmp_path / "video_reason_bench"
    (folder / "questions").mkdir(parents=True)
    (folder / "questions" / "chip.json").write_text(json.dumps({"240": CHIP, "241": SIMULATED}))
    _, left_out = VideoReasonBench().load(BenchmarkPaths(folder=folder))
    assert isinstance(left_out, Skipped)
    assert "simulation" in left_out.reason
    record = {"problem": "Which moves?", "problem_type": "open-ended", "path": "cup/state3_op5_end.mp4", "problem_id": 1}
    (folder / "videoreasonbench.json").write_text(json.dumps([{**record, "options": [], "solution": "<answer>None</answer>"}]))
    (left_out,) = VideoReasonBench().load(BenchmarkPaths(folder=folder, source="normalised"))
    assert isinstance(left_out, Skipped)


def test_an_unknown_dimension_is_an_error(release) -> None:
    with pytest.raises(DataError, match="unknown dim 'magic'; known: order_operation"):
        release(VideoReasonBench(), {"questions/card.json": {"0": {**ROW, "dim": "magic"}}})


def test_only_what_follows_the_marker_counts(items) -> None:
    own, card = VideoReasonBench(), items[0]
    cases = {
        "Final Answer: 9 of Hearts": "9 of Hearts",
        "Final Answer: a\nNo. **Final Answer:** b": "b",
        "Therefore, the final answer is: a, b": "a, b",
        "9 of Hearts, 6 of Spades": None,
        "<answer>9 of Hearts, 6 of Spades</answer>": None,
        "<think>Final Answer: a</think> nothing": None,
    }
    for mode in ("strict", "lenient"):
        assert {reply: own.parse(card, reply, mode) for reply in cases} == cases
    for form in ("direct", "reason", "tags"):
        assert str(own.prompt(card, PromptStyle(form=form)).parts[-1]).count("after 'Final Answer:'") == 1


def test_the_judge_wants_every_item(items) -> None:
    own, card, asked = VideoReasonBench(), items[0], []
    assert own.score(card, "9 of hearts, 6 of spades", None) == {"accuracy": 1.0}
    assert own.needs_judge(card, "9 of Hearts", own.score(card, "9 of Hearts", None))
    assert own.judge(card, "9 of Hearts", "", lambda prompt: asked.append(prompt) or "It is incorrect: Incorrect") == {
        "accuracy": 0.0
    }
    assert "item by item" in asked[0]
