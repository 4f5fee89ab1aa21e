"""Spatio-temporal grounding. The official rows are made by hand in the documented shape; their video is a real one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from attrs import evolve

from evr1_core.api import BenchmarkPaths, BoxSpace, DataError, Row, ScoredRow, Skipped
from evr1_core.api.answers import Tube
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.stvg import FIRST, SpatioTemporalGrounding

STVG = SpatioTemporalGrounding
ROW = {
    "video_path": "0001/77.mp4",
    "conversations": [
        {"from": "human", "value": "<video>\nWho holds the cup?"},
        {"from": "gpt", "value": "<s> to <e>: <bboxes>"},
    ],
    "meta": {
        "width": 640,
        "height": 480,
        "split": [0, 60],
        "time_token": {"<s>": 7, "<e>": 22},
        "spatial_token": {"<bboxes>": {str(frame): [100 + frame, 50, 40, 80] for frame in range(7, 23)}},
    },
}


def official(folder, rows, rate=Fraction(10)):
    av = pytest.importorskip("av")
    (folder / "stvg" / "0001").mkdir(parents=True)
    with av.open(str(folder / "stvg" / "0001" / "77.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(30):
            container.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        container.mux(stream.encode())
    (folder / "stvg" / "stvg.json").write_text(json.dumps(rows), "utf-8")
    return list(STVG().load(BenchmarkPaths(folder=folder / "stvg")))


def made(gold):
    values = {"problem_type": "spatial-temporal grounding", "problem": "Who runs?", "path": "1.mp4", "problem_id": 1}
    values["solution"] = f"<answer>{json.dumps(gold)}</answer>"
    (item,) = STVG().from_normalised(Row(values=values, index=0, origin="x.json:1", file=Path("x.json")))
    return item


def test_real_records(records) -> None:
    items = records(STVG())
    check_benchmark(STVG(), items)
    assert items[0].gold == Tube((0.0, 2.96), {0.0: (325, 320, 402, 359), 1.0: (300, 272, 358, 352), 2.0: (311, 257, 382, 336)})
    assert [item.groups["sentence"] for item in items[:3]] == [("declarative",), ("interrogative",), ("declarative",)]


def test_official_rows_count_frames(tmp_path) -> None:
    bare = {**ROW, "meta": {**ROW["meta"], "spatial_token": {}}}
    first, second = official(tmp_path, [ROW, bare])
    check_benchmark(STVG(), [first, second])
    assert first.question == "Who holds the cup?"
    assert first.gold == Tube((0.7, 2.2), {1.0: (110, 50, 150, 130), 2.0: (120, 50, 160, 130)})
    assert (first.size, first.fps, first.clip) == ((640, 480), 10.0, None)
    assert second.gold.boxes == {}


def test_rows_behind_the_first_2000_are_left_out(tmp_path) -> None:
    found = official(tmp_path, [ROW] * FIRST + [ROW])
    assert isinstance(found[-1], Skipped)
    assert len(found) == FIRST + 1


def test_without_the_video_there_is_no_gold(release) -> None:
    with pytest.raises(DataError, match=r"stvg\.json:1: golds count frames, and the rate of .*77\.mp4 cannot be read"):
        release(STVG(), {"stvg.json": [ROW]})


def test_nothing_there(tmp_path) -> None:
    with pytest.raises(DataError, match="there are no annotations"):
        list(STVG().load(BenchmarkPaths(folder=tmp_path)))


def test_a_worked_tube() -> None:
    item = made({"time": [4, 6], "boxes": {second: [0, 0, 100, 100] for second in ("4", "5", "6")}})
    answer = STVG().parse(item, '{"time": [5, 7], "boxes": {"5": [0,0,50,100], "6.0": [0,0,70,100], "7s": [0,0,9,9]}}', "lenient")
    assert STVG().score(evolve(item, size=(640, 480)), answer, None) == {
        "score": pytest.approx(0.5 / 3 + 0.5 * 0.6),
        "tiou": pytest.approx(1 / 3),
        "miou": pytest.approx(0.60),
        "viou": pytest.approx(1.2 / 4),
        "viou@0.3": 1.0,
        "viou@0.5": 0.0,
        "viou@0.7": 0.0,
    }


def test_boxes_are_in_the_space_of_the_model() -> None:
    item = evolve(made({"time": [4, 5], "boxes": {"4": [160, 240, 480, 480]}}), size=(640, 480))
    text = '{"time": [4, 5], "boxes": {"4": [250, 500, 750, 1000]}}'
    thousand = BoxSpace(kind="norm1000", width=640, height=480)
    assert STVG().score(item, STVG().parse(item, text, "lenient"), thousand)["viou"] == pytest.approx(1)
    assert STVG().score(item, STVG().parse(item, text, "lenient"), None)["viou"] < 1


def test_one_easy_box_is_not_the_tube() -> None:
    item = made({"time": [0, 9], "boxes": {str(second): [0, 0, 10, 10] for second in range(10)}})
    scores = STVG().score(item, STVG().parse(item, '{"time": [0, 9], "boxes": {"3": [0, 0, 10, 10]}}', "lenient"), None)
    assert (scores["miou"], scores["viou"]) == (1.0, pytest.approx(0.1))


def test_rows_without_boxes_are_scored_by_time() -> None:
    items = [made({"time": [0, 4], "boxes": {}}), made({"time": [0, 4], "boxes": {"1": [0, 0, 10, 10]}})]
    scored = []
    for item in items:
        answer = STVG().parse(item, '{"time": [0, 2]}', "lenient")
        scored.append(ScoredRow(item=item, answer=answer, scores=STVG().score(item, answer, None)))
    found = STVG().aggregate(scored)
    assert (found["score"], found["tiou"], found["miou"]) == (pytest.approx((50 + 25) / 2), pytest.approx(50), 0.0)
