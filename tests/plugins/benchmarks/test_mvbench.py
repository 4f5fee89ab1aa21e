"""MVBench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, ScoredRow, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.mvbench import FOLDERS, MVBench

WHEN = {
    "video": "AB12C.mp4",
    "question": "When does somebody sit down?",
    "candidates": ["At the end.", "At the beginning.", "Throughout."],
    "answer": "At the beginning.",
    "start": 2.5,
    "end": 17.75,
    "accurate_start": 2.5,
    "accurate_end": 7.5,
}
WHICH = {"video": "7.webm", "question": "Which is it?", "candidates": ["Opens", "Closes"], "answer": "Closes"}
NORMALISED = {
    "problem": "What is next?",
    "problem_type": "multiple choice",
    "options": ["A. x", "B. y"],
    "solution": "<answer>B</answer>",
    "path": "./star/Charades_v1_480/x.mp4",
    "problem_id": 3001,
    "start": 1.0,
    "end": 4.0,
}


def normalised(tmp_path, *rows):
    (tmp_path / "mvbench.json").write_text(json.dumps(rows))
    return list(MVBench().load(BenchmarkPaths(folder=tmp_path, source="normalised")))


def test_real_records(records) -> None:
    items = records(MVBench())
    check_benchmark(MVBench(), items)
    first, second, third = items[:3]
    assert (first.groups, first.clip) == ({"subtask": ("action_sequence",)}, (7.2, 16.0))
    assert (second.groups, second.clip) == ({"subtask": ("action_localization",)}, (2.5, 17.799999999999997))
    assert (third.groups, third.clip) == ({"subtask": ("moving_attribute",)}, None)
    assert third.video == "clevrer/video_validation/video_11855.mp4"


def test_official_rows(release) -> None:
    which, when = release(MVBench(), {"json/action_localization.json": [WHEN], "json/action_antonym.json": [WHICH]})
    check_benchmark(MVBench(), [when, which])
    assert (when.uid, when.gold, when.choices[1]) == ("mvbench/1", "B", "At the beginning.")
    assert (when.video, when.clip) == ("sta/sta_video/AB12C.mp4", (2.5, 17.75))
    assert (which.labels, which.gold, which.video, which.clip) == (("A", "B"), "B", "ssv2_video/7.webm", None)
    assert which.groups == {"subtask": ("action_antonym",)}


def test_the_numbers_of_the_normalised_form_tell_the_subtask(tmp_path) -> None:
    names = [*FOLDERS]
    rows = [{**NORMALISED, "path": f"{FOLDERS[name]}/a/x.mp4", "problem_id": 200 * names.index(name) + 1} for name in names]
    assert [item.groups["subtask"][0] for item in normalised(tmp_path, *rows)] == names
    with pytest.raises(DataError, match=r"the number 3000 is not one of a subtask with a video star/Charades_v1_480/x\.mp4"):
        normalised(tmp_path, {**NORMALISED, "problem_id": 3000})


def test_stills_are_left_out_and_unknown_files_are_errors(tmp_path, release) -> None:
    with pytest.raises(DataError, match="unknown subtask 'cooking'"):
        release(MVBench(), {"json/cooking.json": [WHICH]})
    (tmp_path / "mvbench" / "json" / "cooking.json").rename(tmp_path / "mvbench" / "json" / "episodic_reasoning.json")
    (left_out,) = MVBench().load(BenchmarkPaths(folder=tmp_path / "mvbench"))
    assert isinstance(left_out, Skipped)


def test_an_answer_that_is_no_candidate(release) -> None:
    with pytest.raises(DataError, match=r"action_antonym\.json:1: the answer 'Turns' is none of the choices"):
        release(MVBench(), {"json/action_antonym.json": [{**WHICH, "answer": "Turns"}]})


def test_where_videos_lie(tmp_path) -> None:
    (tmp_path / "video" / "ssv2_video").mkdir(parents=True)
    (tmp_path / "video" / "ssv2_video" / "7.mp4").touch()
    paths = BenchmarkPaths(folder=tmp_path)
    assert MVBench().locate("ssv2_video/7.webm", paths) == "video/ssv2_video/7.mp4"  # a newer revision
    assert MVBench().locate("ssv2_video/8.webm", paths) is None


def test_the_mean_of_subtasks(release) -> None:
    items = release(MVBench(), {"json/action_localization.json": [WHEN, WHEN, WHEN], "json/action_antonym.json": [WHICH]})
    scored = [ScoredRow(item=item, answer="B", scores={"accuracy": right}) for item, right in zip(items, (0, 1, 1, 1), strict=True)]
    found = MVBench().aggregate(scored)
    assert (found["accuracy"], found["macro"], found["subtask=action_antonym/accuracy"]) == (75.0, 50.0, 0.0)
