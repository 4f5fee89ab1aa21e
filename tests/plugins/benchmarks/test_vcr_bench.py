"""VCR-Bench. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest
from attrs import evolve

from evr1_core.api import BenchmarkPaths, BoxSpace, PromptStyle
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.vcr_bench import VCRBench

ROW = {
    "id": 7,
    "video_path": "videos/a/x.mp4",
    "duration": 60,
    "dimension": "FTR",
    "question": "What falls?",
    "multiple-choice": True,
    "choices": {"A": "a cup", "B": "a pan", "C": "a lid", "D": "a hat", "E": "a coat"},
    "answer": "E",
    "reasoning": ["It falls."],
}
OPEN = {**ROW, "id": 8, "duration": 61, "dimension": "VTC", "multiple-choice": False, "choices": None, "answer": "A red cup."}
SPAN = {**OPEN, "id": 9, "duration": 300.5, "dimension": "TSG", "question": "When does it fall?", "answer": "[10, 20]"}
BOX = {**OPEN, "id": 10, "duration": 300, "dimension": "VTG", "question": "Where is it at 2 s?", "answer": "[160, 240, 480, 480]"}
SPACE = BoxSpace(kind="norm1000", width=640, height=480)


@pytest.fixture
def items(release):
    return release(VCRBench(), {"v1/meta_info_video.json": [ROW, OPEN, SPAN, BOX]})


def test_real_records(records) -> None:
    items = records(VCRBench())
    check_benchmark(VCRBench(), items)
    forms = [item.groups["form"][0] for item in items]
    assert {form: forms.count(form) for form in set(forms)} == {"span": 3, "box": 5, "open": 8}
    assert (items[0].task, items[0].gold, items[0].judge) == ("tgrounding", (26, 31), None)
    assert items[0].video == "video/ActivitynetCaptions_videos_bench/val/v7OluHKECRA.mp4"
    assert (items[13].gold, items[13].judge) == ("4", "equiv")  # a number is no span


def test_official_rows(items, tmp_path) -> None:
    check_benchmark(VCRBench(), items)
    choice, text, span, box = items
    assert (choice.labels, choice.gold, choice.video, choice.judge) == (("A", "B", "C", "D", "E"), "E", "videos/a/x.mp4", None)
    assert (text.task, text.gold, text.judge) == ("open", "A red cup.", "equiv")
    assert (span.task, span.gold, span.judge) == ("tgrounding", (10, 20), None)
    assert (box.task, box.meta["box"], box.judge) == ("open", (160, 240, 480, 480), None)
    assert [item.groups["duration"] for item in items] == [("<=60 s",), ("60-300 s",), (">300 s",), ("60-300 s",)]
    assert choice.groups["dimension"] == ("FTR",)
    video = tmp_path / "vcr_bench" / "v1" / "videos" / "a" / "x.mp4"
    video.parent.mkdir(parents=True)
    video.touch()
    found = VCRBench().locate(choice.video, BenchmarkPaths(folder=tmp_path / "vcr_bench"))
    assert found == "v1/videos/a/x.mp4"


def test_a_span_counts_over_seven_tenths(items) -> None:
    own, span = VCRBench(), items[2]
    for reply, right in (("from 10 to 17.1 seconds", 1), ("[10, 17]", 0), ("[20, 10]", 1), ("around 12 seconds", 0)):
        assert own.score(span, own.parse(span, reply, "lenient"), None) == {"accuracy": right}, reply
    assert not own.needs_judge(span, '{"time": [1, 2]}', {"accuracy": 0.0})


def test_a_box_counts_over_one_half_in_pixels_of_the_source(items) -> None:
    own, box = VCRBench(), items[3]
    cases = (
        ("[250, 500, 750, 1000]", SPACE, 1),
        ("[250, 500, 500, 1000]", SPACE, 0),  # exactly one half
        ("[250, 500, 501, 1000]", SPACE, 1),
        ("[160, 240, 480, 480]", SPACE, 0),  # pixels, of a model that answers in thousandths
        ("[160, 240, 480, 480]", None, 1),
        ("in the middle", SPACE, 0),
    )
    for reply, space, right in cases:
        assert own.score(box, own.parse(box, reply, "strict"), space) == {"accuracy": right}, reply
    assert not own.needs_judge(box, "[1, 2, 3, 4]", {"accuracy": 0.0})
    assert "[x1, y1, x2, y2]" in str(own.prompt(box, PromptStyle()).parts[-1])


def test_a_judge_decides_on_other_words_and_sees_the_question(items) -> None:
    own, text, asked = VCRBench(), items[1], []
    assert own.score(text, "a red cup", None) == {"accuracy": 1.0}
    assert own.needs_judge(text, "a crimson mug", own.score(text, "a crimson mug", None))
    assert own.judge(text, "a crimson mug", "", lambda prompt: asked.append(prompt) or "Judgement: 1") == {"accuracy": 1.0}
    assert "What falls?" in asked[0]
    assert not own.needs_judge(evolve(items[0]), "A", {"accuracy": 0.0})
