"""MLVU. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import BenchmarkPaths, DataError, ScoredRow, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.mlvu import MLVU
from tests.plugins.benchmarks.conftest import RECORDS, write

ROW = {
    "video": "test_ER_7.mp4",
    "duration": 480.5,
    "question": "What does he hold?",
    "candidates": ["a cup", "a pen", "a bag", "a hat", "a key", "a box"],
    "answer": "a box",
    "question_type": "plotQA",
    "question_id": "ER_7",
}
FILE = "test-ground-truth/test_mcq_gt.json"


def test_real_records(records) -> None:
    items = records(MLVU())
    check_benchmark(MLVU(), items)
    assert (items[0].video, items[0].labels, items[0].gold) == ("video/test_count_15.mp4", tuple("ABCDEF"), "D")
    assert "m_avg" not in MLVU().aggregate([ScoredRow(item=items[0], answer="D", scores={"accuracy": 1.0})])


def test_the_dev_split(tmp_path) -> None:
    if RECORDS.is_dir():
        items = list(MLVU(split="dev").load(BenchmarkPaths(folder=RECORDS / "mlvu", source="normalised")))
        assert (len(items), items[0].video) == (16, "video/game_35.mp4")
    with pytest.raises(DataError, match="no annotations of the dev split"):
        list(MLVU(split="dev").load(BenchmarkPaths(folder=tmp_path)))
    write_to = tmp_path / "json" / "1_plotQA.json"
    write_to.parent.mkdir()
    write(write_to, [{**ROW, "question_type": "sub_scene", "candidates": None}, ROW])
    (tmp_path / "video" / "1_plotQA").mkdir(parents=True)
    (tmp_path / "video" / "1_plotQA" / "test_ER_7.mp4").touch()
    left_out, item = MLVU(split="dev").load(BenchmarkPaths(folder=tmp_path))
    assert isinstance(left_out, Skipped)
    assert MLVU().locate(item.video, BenchmarkPaths(folder=tmp_path)) == "video/1_plotQA/test_ER_7.mp4"


def test_official_rows(release) -> None:
    items = release(MLVU(), {FILE: [ROW]})
    check_benchmark(MLVU(), items)
    (item,) = items
    assert (item.gold, item.source_id, item.duration) == ("F", "ER_7", 480.5)
    assert (item.video, item.groups) == ("video/test_ER_7.mp4", {"task": ("plotQA",)})
    with pytest.raises(DataError, match="the answer 'a dog' is none of the choices"):
        release(MLVU(), {FILE: [{**ROW, "answer": "a dog"}]})


def test_the_mean_over_tasks(release) -> None:
    rows = [ROW, ROW, ROW, {**ROW, "question_type": "ego"}]
    items = release(MLVU(), {FILE: rows})
    scored = [ScoredRow(item=item, answer="F", scores={"accuracy": score}) for item, score in zip(items, (1, 1, 0, 0), strict=True)]
    found = MLVU().aggregate(scored)
    assert found["accuracy"] == pytest.approx(50)
    assert found["m_avg"] == pytest.approx((200 / 3 + 0) / 2)
