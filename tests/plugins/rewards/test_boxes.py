"""Spatial grounding, spatial-temporal grounding and tracking."""

from __future__ import annotations

import pytest

from evr1_core.api import BadGoldError, BoxSpace
from evr1_plugins.rewards.spatial_iou import SpatialIoU
from evr1_plugins.rewards.st_iou import SpatialTemporalIoU

ST = "spatial temporal grounding"
BOX = [10, 10, 20, 20]
GOLD = {"time": [3, 7], "boxes": {str(second): BOX for second in range(3, 8)}}


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy", "parsed"),
    [
        ({"boxes": [5, 5, 15, 15]}, {"boxes": [0, 0, 10, 10]}, 25 / 175, True),
        ({"boxes": BOX}, BOX, 1.0, True),
        ({"boxes": BOX}, {"boxes": [20, 20, 10, 10]}, 1.0, True),
        ({"boxes": BOX}, {"boxes": [10, 10, 10, 10]}, 0.0, True),
        ({"boxes": BOX}, {"boxes": [-1e9, -1e9, 1e9, 1e9]}, 0.0, True),
        ({"boxes": BOX}, {"boxes": [10, 20, 30]}, 0.0, False),
        ({"boxes": BOX}, [BOX, [0, 0, 5, 5]], 0.0, False),
        ({"boxes": BOX}, None, 0.0, False),
    ],
)
def test_spatial(record, score, gold, answer, accuracy, parsed) -> None:
    result = score(SpatialIoU(), record("spatial grounding", gold), answer)
    assert result.accuracy == pytest.approx(accuracy, abs=1e-9)
    assert result.parsed is parsed


@pytest.mark.parametrize(
    ("boxes", "answer"),
    [
        (BoxSpace(kind="norm1000", width=640, height=480), [250, 500, 750, 1000]),
        (BoxSpace(kind="norm1", width=640, height=480), [0.25, 0.5, 0.75, 1]),
        (BoxSpace(kind="resized", width=640, height=480, resized_width=320, resized_height=320), [80, 160, 240, 320]),
        (BoxSpace(kind="pixel"), [160, 240, 480, 480]),
        (None, [160, 240, 480, 480]),
    ],
)
def test_spaces_of_the_prediction(record, score, boxes, answer) -> None:
    assert score(SpatialIoU(), record("spatial grounding", [160, 240, 480, 480]), answer, boxes).accuracy == pytest.approx(1.0)


def test_spaces_declared_by_record_and_option(record, score) -> None:
    gold, guess = [250, 500, 750, 1000], [160, 240, 480, 480]
    own = record("spatial grounding", gold, box_space="norm1000", prediction_box_space="pixel", width=640, height=480)
    assert score(SpatialIoU(), own, guess).accuracy == pytest.approx(1.0)
    reward = SpatialIoU(gold_space="norm1000", prediction_space="pixel")
    assert score(reward, record("spatial grounding", gold, width=640, height=480), guess).accuracy == pytest.approx(1.0)
    with pytest.raises(BadGoldError, match="width"):
        score(reward, record("spatial grounding", gold), guess)
    with pytest.raises(BadGoldError, match="known box space"):
        score(reward, record("spatial grounding", gold, box_space="metres"), guess)


@pytest.mark.parametrize("gold", [[10, 10, 10, 20], [1, 2, 3], [BOX, [0, 0, 5, 5]], "left", {"boxes": [0, 0, float("inf"), 1]}])
def test_broken_spatial_gold(record, score, gold) -> None:
    with pytest.raises(BadGoldError):
        score(SpatialIoU(), record("spatial grounding", gold), BOX)


@pytest.mark.parametrize(
    ("answer", "accuracy"),
    [
        (GOLD, 1.0),
        ({"time": [3, 7], "boxes": {"3": BOX}}, 0.6),
        ({"time": [3, 7], "boxes": {f"{s}.0": BOX for s in range(3, 8)}}, 1.0),
        ({"time": [3, 7], "boxes": [{"time": s, "bbox_2d": BOX} for s in range(3, 8)]}, 1.0),
        ({"time": [10, 14], "boxes": {str(s): BOX for s in range(10, 15)}}, 0.0),
        ({"time": [3, 7], "boxes": {str(s): BOX for s in range(3, 13)}}, 0.5 + 0.5 * 5 / 10),
        ({"time": [3, 7], "boxes": {**{str(s): BOX for s in range(3, 8)}, "4.5": [0, 0, 1, 1]}}, 1.0),
        ({"time": [3, 7], "boxes": {**{str(s): BOX for s in range(3, 8)}, "4": [1, 2, 3]}}, 0.5 + 0.5 * 4 / 5),
        ({"time": [3, 7]}, 0.5),
        ("3 to 7 seconds", 0.5),
        ({"boxes": GOLD["boxes"]}, 0.0),
        ({"time": [[3, 7], [1, 2]], "boxes": GOLD["boxes"]}, 0.0),
        ("no idea", 0.0),
        (None, 0.0),
    ],
)
def test_spatial_temporal(record, score, answer, accuracy) -> None:
    assert score(SpatialTemporalIoU(), record(ST, GOLD), answer).accuracy == pytest.approx(accuracy)


def test_two_different_tubes_are_no_answer(record, score) -> None:
    import json

    other = {"time": [0, 1], "boxes": {}}
    assert not score(SpatialTemporalIoU(), record(ST, GOLD), f"{json.dumps(other)} or {json.dumps(GOLD)}").parsed


def test_gold_without_boxes_is_scored_on_time_alone(record, score) -> None:
    for gold in ({"time": [3, 7], "boxes": {}}, {"time": [3, 7]}):
        assert score(SpatialTemporalIoU(), record(ST, gold), {"time": [3, 5], "boxes": {"3": BOX}}).accuracy == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("answer", "accuracy"),
    [
        ({"boxes": GOLD["boxes"]}, 1.0),
        (GOLD, 1.0),
        ({"boxes": {"3": BOX}}, 0.2),
        ([{"time": s, "bbox_2d": BOX} for s in range(3, 8)], 1.0),
        ({"time": [3, 7]}, 0.0),
    ],
)
def test_tracking_is_viou_alone(record, score, answer, accuracy) -> None:
    assert score(SpatialTemporalIoU(), record("tracking", {"boxes": GOLD["boxes"]}), answer).accuracy == pytest.approx(accuracy)


def test_spaces_of_tubes(record, score) -> None:
    gold = {"time": [0, 1], "boxes": {"0": [160, 240, 480, 480]}}
    guess = {"time": [0, 1], "boxes": {"0": [250, 500, 750, 1000]}}
    assert score(
        SpatialTemporalIoU(), record(ST, gold), guess, BoxSpace(kind="norm1000", width=640, height=480)
    ).accuracy == pytest.approx(1)


@pytest.mark.parametrize(
    ("task", "gold"),
    [(ST, {"boxes": {"3": BOX}}), (ST, {"time": [3, 7], "boxes": {"3": [1, 1, 1, 2]}}), ("tracking", {"time": [3, 7]})],
)
def test_broken_tube_gold(record, score, task, gold) -> None:
    with pytest.raises(BadGoldError):
        score(SpatialTemporalIoU(), record(task, gold), GOLD)


def test_forms(record) -> None:
    import json

    spatial, tubes = SpatialIoU(), SpatialTemporalIoU()
    assert spatial.well_formed(record("spatial grounding", BOX), '{"boxes": [1, 2, 3, 4]}')
    assert not spatial.well_formed(record("spatial grounding", BOX), "[1, 2, 3, 4]")
    assert not spatial.well_formed(record("spatial grounding", BOX), "")
    assert tubes.well_formed(record(ST, GOLD), json.dumps(GOLD))
    assert not tubes.well_formed(record(ST, GOLD), '{"time": [3, 7]}')
    assert not tubes.well_formed(record(ST, GOLD), '{"time": [3, 7], "boxes": {"3": [1]}}')
    assert tubes.well_formed(record("tracking", GOLD), '{"boxes": {"3": [1, 2, 3, 4]}}')
