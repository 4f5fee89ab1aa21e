"""Video-MMMU. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, Media, PromptStyle, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.videommmu import ALONE, VideoMMMU

ROW = {
    "id": "validation_Basic_Medical_Science_4",
    "question": "<image 1> What is shown?",
    "options": [f"{letter}. choice {letter}" for letter in "ABCDEFGHIJKLMN"],
    "answer": "N",
    "question_type": "None",
    "link_selected": "https://example.org/x",
    "image": {"bytes": b"PNG", "path": "x.png"},
}
NUMBER = {**ROW, "id": "new_Finance_20", "options": [], "answer": "7,243,000", "question_type": "open"}
SEEN = {key: value for key, value in ROW.items() if key != "image"}
ADAPTATION = "Adaptation/test-00000-of-00001.parquet"


def official(release, benchmark, *, adaptation):
    files = {ADAPTATION: adaptation}
    return release(benchmark, files | {f"{track}/test-00000-of-00001.parquet": [SEEN] for track in ("Comprehension", "Perception")})


def test_real_records(records) -> None:
    items = records(VideoMMMU())
    check_benchmark(VideoMMMU(), items)
    first = items[0]
    assert (first.task, first.gold, first.images) == ("numeric", 7243000.0, ("images/validation_Finance_20.png",))
    assert first.groups == {"track": ("Adaptation",), "discipline": ("Business",)}
    assert [items[place].groups["track"] for place in (4, 5)] == [("Perception",), ("Comprehension",)]
    assert len(items[1].labels) == 10


def test_official_rows(tmp_path, release) -> None:
    items = official(release, VideoMMMU(), adaptation=[ROW, NUMBER])
    check_benchmark(VideoMMMU(), items)
    choice, number, comprehension, perception = items
    assert choice.uid == "videommmu/Adaptation/validation_Basic_Medical_Science_4"
    assert (choice.task, choice.gold, len(choice.labels)) == ("mc", "N", 14)
    assert choice.video == "Medicine/validation_Basic_Medical_Science_4.mp4"
    assert choice.images == ("images/validation_Basic_Medical_Science_4.png",)
    assert (number.task, number.gold) == ("numeric", 7243000.0)
    assert number.groups == {"track": ("Adaptation",), "discipline": ("Business",)}
    assert (comprehension.images, perception.images) == ((), ())
    assert perception.groups["track"] == ("Perception",)
    assert (tmp_path / "videommmu" / "images" / "new_Finance_20.png").read_bytes() == b"PNG"


def test_hints_say_what_the_last_frame_shows(release) -> None:
    choice, *_, perception = official(release, VideoMMMU(), adaptation=[ROW])
    video, image, text = VideoMMMU().prompt(choice, PromptStyle()).parts
    assert image == Media(kind="image", path="images/validation_Basic_Medical_Science_4.png")
    assert (video.kind, "it is also the last frame" in text) == ("video", True)
    assert "Ignore the question that the last frame" in VideoMMMU().prompt(perception, PromptStyle()).parts[-1]


def test_choices_that_stand_in_the_image_alone(release) -> None:
    drawn, *_ = official(release, VideoMMMU(), adaptation=[{**ROW, "options": ["A. ", "B. ", "C. "], "answer": "C"}])
    check_benchmark(VideoMMMU(), [drawn])
    assert (drawn.choices, drawn.gold) == (("", "", ""), "C")
    assert VideoMMMU().parse(drawn, "The answer is B.", "lenient") == "B"


def test_numbers_are_compared_after_rounding(release) -> None:
    item, *_ = official(release, VideoMMMU(), adaptation=[{**NUMBER, "answer": "4"}])
    for text, right in (("4.0", 1), ("4.004", 1), ("4.1", 0)):
        assert VideoMMMU().score(item, VideoMMMU().parse(item, text, "lenient"), None) == {"accuracy": right}


def test_what_the_lecture_teaches(release) -> None:
    benchmark = VideoMMMU(question_only=True)
    items = official(release, benchmark, adaptation=[ROW, {**ROW, "id": "dev_Art_1"}])
    taught, alone = items[0], items[1]
    assert (alone.video, alone.images) == ("question_only/validation_Basic_Medical_Science_4.mp4", taught.images)
    assert (alone.uid, alone.groups) == (f"{taught.uid}/alone", {"track": (ALONE,)})
    assert "last frame" not in benchmark.prompt(alone, PromptStyle()).parts[-1]
    found = benchmark.aggregate([scored(taught, 0.5), scored(alone, 0.4), scored(items[-1], 1)])
    assert found["delta_knowledge"] == pytest.approx(100 / 6)  # 50 with, 40 without: 16.67
    assert (found["accuracy"], found["alone"]) == (pytest.approx(75), pytest.approx(40))
    assert "delta_knowledge" not in benchmark.aggregate([scored(taught, 1), scored(alone, 1)])
    check_benchmark(benchmark, items)


def scored(item, score):
    return ScoredRow(item=item, answer="A", scores={"accuracy": score})


def test_where_videos_lie(tmp_path) -> None:
    paths = BenchmarkPaths(folder=tmp_path)
    for place in ("Science/validation_Math_4.mp4", "new_Art_1.mp4", "Science/new_Math_5.mp4"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch()
    assert VideoMMMU().locate("validation_Math_4.mp4", paths) == "Science/validation_Math_4.mp4"
    assert VideoMMMU().locate("Art/new_Art_1.mp4", paths) == "new_Art_1.mp4"
    assert VideoMMMU().locate("question_only/new_Math_5.mp4", paths) is None  # never the lecture instead


def test_rows_that_cannot_be_read(tmp_path, release) -> None:
    with pytest.raises(DataError, match="'dev_Magic_1' names no known subject"):
        release(VideoMMMU(), {ADAPTATION: [{**ROW, "id": "dev_Magic_1"}]})
    row = {"problem_type": "multiple choice", "problem": "x", "options": ["A. a", "B. b"], "solution": "<answer>A</answer>"}
    (tmp_path / "videommmu.json").write_text(json.dumps([{**row, "problem_id": 900, "path": "dev_Art_1.mp4"}]), "utf-8")
    with pytest.raises(DataError, match="problem_id 900 is none of 0 to 899"):
        list(VideoMMMU().load(BenchmarkPaths(folder=tmp_path / "other")))
