"""Charades-STA. The official lines are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from evr1_core.api import BenchmarkPaths, DataError, PromptStyle
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.charades_sta import CharadesSta

LINES = "AB12C 3.1 9.4##person opens a door.\nXY98Z 24.3 30.4##a person eats.\n"


def official(tmp_path, text=LINES):
    folder = tmp_path / "charades_sta"
    folder.mkdir(exist_ok=True)
    (folder / "charades_sta_test.txt").write_text(text, "utf-8")
    return BenchmarkPaths(folder=folder)


def test_real_records(records) -> None:
    items = records(CharadesSta())
    check_benchmark(CharadesSta(), items)
    assert (items[0].question, items[0].gold, items[0].video) == ("person eats it.", (8.703125, 23.59375), "318CP.mp4")


def test_official_lines(tmp_path) -> None:
    first, second = CharadesSta().load(official(tmp_path))
    check_benchmark(CharadesSta(), [first, second])
    assert (first.uid, first.gold, first.video) == ("charades_sta/0", (3.1, 9.4), "Charades_v1_480/AB12C.mp4")
    assert second.origin.endswith("charades_sta_test.txt:2")
    text = CharadesSta().prompt(first, PromptStyle()).parts[-1]
    assert 'When in the video does this happen: "person opens a door."?' in text
    assert text.endswith("between <answer> and </answer>.")


def test_rows_of_the_mirror(release) -> None:
    row = {"video": "AB12C.mp4", "caption": "person opens a door.", "timestamp": [3.1, 9.4]}
    (item,) = release(CharadesSta(), {"data/test-00000-of-00001.parquet": [row]})
    assert (item.gold, item.video) == ((3.1, 9.4), "Charades_v1_480/AB12C.mp4")


def test_normalised_rows_with_an_answer_tag(tmp_path) -> None:
    row = {"problem_type": "temporal grounding", "problem": "x", "problem_id": 1, "path": "a.mp4", "options": []}
    row["solution"] = '<answer>{"time": [1.0, 2.5]}</answer>'
    (tmp_path / "charades_sta.json").write_text(json.dumps([row]), "utf-8")
    (item,) = CharadesSta().load(BenchmarkPaths(folder=tmp_path / "charades_sta"))
    assert item.gold == (1.0, 2.5)


@pytest.mark.parametrize("text", ["AB12C 3.1##person opens a door.", "AB12C 9.4 3.1##person opens a door.", "\n"])
def test_lines_that_cannot_be_read(tmp_path, text) -> None:
    with pytest.raises(DataError, match=r"charades_sta_test\.txt:1"):
        list(CharadesSta().load(official(tmp_path, text)))


@pytest.mark.parametrize(
    ("response", "overlap", "reached"),
    [
        ('{"time": [4, 8]}', 4 / 6.3, 2),
        ("from 00:03 to 00:05", 1.9 / 6.4, 0),
        ("8.0 - 4.0 seconds", 4 / 6.3, 2),
        ("around 5 seconds", 0, 0),
        ('{"time": [3.1, 20]}', 6.3 / 6.9, 3),  # cut to the length of the video
    ],
)
def test_overlaps(tmp_path, response, overlap, reached) -> None:
    first, _ = CharadesSta().load(official(tmp_path))
    item = evolve(first, duration=10.0)
    scores = CharadesSta().score(item, CharadesSta().parse(item, response, "lenient"), None)
    assert scores["iou"] == pytest.approx(overlap)
    assert [scores[f"r1@{least}"] for least in (0.3, 0.5, 0.7)] == [1.0] * reached + [0.0] * (3 - reached)


def test_a_gold_behind_the_end_stays(tmp_path) -> None:
    first, _ = CharadesSta().load(official(tmp_path))
    item = evolve(first, duration=6.1)
    assert CharadesSta().score(item, CharadesSta().parse(item, "3.1 to 9.4 s", "lenient"), None)["iou"] == pytest.approx(3 / 6.3)


def test_videos_may_lie_in_the_folder_of_their_release(tmp_path) -> None:
    paths = official(tmp_path)
    (paths.folder / "Charades_v1_480").mkdir()
    (paths.folder / "Charades_v1_480" / "318CP.mp4").touch()
    assert CharadesSta().locate("318CP.mp4", paths) == "Charades_v1_480/318CP.mp4"
    assert CharadesSta().locate("Charades_v1_480/318CP.mp4", paths) == "Charades_v1_480/318CP.mp4"
    assert CharadesSta().locate("other.mp4", paths) is None
