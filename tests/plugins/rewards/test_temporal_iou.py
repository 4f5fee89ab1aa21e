"""Temporal grounding."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BadGoldError
from evr1_plugins.rewards.temporal_iou import TemporalIoU

TASK = "temporal grounding"


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy"),
    [
        ({"time": [3.0, 5.0]}, "3.2 to 5.1 seconds", 1.8 / 2.1),
        ({"time": [3, 5]}, "00:03-00:05", 1.0),
        ({"time": [3, 5]}, {"time": [5, 3]}, 1.0),
        ({"time": [10, 13]}, {"time": [0, 60]}, 0.05),
        ({"time": [0, 5]}, {"time": [5, 9]}, 0.0),
        ({"time": [3, 5]}, {"time": [4, 4]}, 0.0),
        ({"time": [4, 4]}, {"time": [4, 4]}, 1.0),
        ({"time": [4, 4]}, {"time": [3, 5]}, 0.0),
        ({"time": [3, 5]}, {"time": [-3, 5]}, 0.0),
        ({"time": [3, 5]}, "1 to 2 or 3 to 5 seconds", 0.0),
        ({"time": [[0, 1], [3, 5]]}, {"time": [3, 5]}, 1.0),
        ("3.0 to 5.0 seconds", {"time": [3, 5]}, 1.0),
        ({"time": [3, 5]}, None, 0.0),
    ],
)
def test_accuracy(record, score, gold, answer, accuracy) -> None:
    assert score(TemporalIoU(), record(TASK, gold), answer).accuracy == pytest.approx(accuracy)


def test_union_of_several_golds(record, score) -> None:
    golds = {"time": [[0, 2], [4, 6]]}
    assert score(TemporalIoU(union=True), record(TASK, golds), golds).accuracy == 1.0
    assert score(TemporalIoU(), record(TASK, golds, union=True), {"time": [0, 6]}).accuracy == pytest.approx(4 / 6)
    assert not score(TemporalIoU(), record(TASK, golds), golds).parsed


def test_clock_can_be_switched_off(record, score) -> None:
    assert not score(TemporalIoU(clock=False), record(TASK, {"time": [3, 5]}), "00:03-00:05").parsed


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        ('{"time": [3, 5]}', True),
        ('{"time": [3, 5], "boxes": {}}', True),
        ("3 to 5 seconds", False),
        ("[3, 5]", False),
        ('{"time": [3]}', False),
        ('{"time": [3, NaN]}', False),
        ('so {"time": [3, 5]}', False),
        ("", False),
    ],
)
def test_form(record, answer, good) -> None:
    assert TemporalIoU().well_formed(record(TASK, {"time": [3, 5]}), answer) is good


@pytest.mark.parametrize(
    "gold", ["", "soon", {"time": [3]}, {"time": [-1, 5]}, {"boxes": {}}, '<think>{"time": [1, 2]}</think><[x]>']
)
def test_broken_gold(record, score, gold) -> None:
    with pytest.raises(BadGoldError):
        score(TemporalIoU(), record(TASK, gold), "3 to 5 s")


def test_gold_in_the_form_of_a_prediction(record) -> None:
    assert json.loads(TemporalIoU().gold_answer(record(TASK, "00:03-00:05"), None)) == {"time": [3, 5]}
