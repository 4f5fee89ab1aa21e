"""TempCompass. The rows are made by hand in the two documented shapes."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError, PromptStyle, ScoredRow, Skipped
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.tempcompass import TempCompass

BASE = {"video_id": "77", "dim": "direction"}
CHOICE = {"question": "Where does the cup move?\nA. falling\nB. rising\nC. left", "answer": "B. rising"}
YES = {"question": "Does the cup rise?", "answer": "yes"}
MATCH = {"question": "Which fits better?\nOption 1: The cup rises.\nOption 2: The cup falls.", "answer": "Option 2: The cup falls."}
NAMED = {"question": "Which fits better?\nCaption A: It stays.\nCaption B: It falls.", "answer": "Caption B: It falls."}
CAPTION = {"question": "Describe the video.", "answer": "B. rising", "mc_question": CHOICE["question"], "mc_answer": "B. rising"}
STYLES = {"multi-choice": CHOICE, "yes_no": YES, "caption_matching": MATCH, "captioning": CAPTION}
TABLES = {f"{style}/test-00000-of-00001.parquet": [{**BASE, **row}] for style, row in STYLES.items()}
OBJECTS = {f"questions/{style}.json": {"77": {"direction": [row, row], "order": None}} for style, row in STYLES.items()}


def one(release, style, row=None):
    (item,) = release(TempCompass(), {f"{style}/test-00000-of-00001.parquet": [{**BASE, **(row or STYLES[style])}]})
    return item


def test_tables(release) -> None:
    items = release(TempCompass(), TABLES)
    check_benchmark(TempCompass(), items)
    matching, captioning, choice, truth = items
    assert [item.uid for item in items] == [f"tempcompass/{number}" for number in range(4)]
    assert (matching.task, matching.question, matching.gold) == ("mc", "Which fits better?", "B")
    assert matching.choices == ("The cup rises.", "The cup falls.")
    assert (captioning.task, captioning.gold, captioning.meta["mc_question"]) == ("caption_mc", "B", "Where does the cup move?")
    assert (choice.task, choice.choices, choice.gold) == ("mc", ("falling", "rising", "left"), "B")
    assert (truth.task, truth.gold, truth.video) == ("yesno", True, "videos/77.mp4")
    assert truth.groups == {"style": ("yes_no",), "aspect": ("direction",), "style_aspect": ("yes_no direction",)}


def test_the_form_of_the_authors_with_fine_aspects(tmp_path, release) -> None:
    items = release(TempCompass(), OBJECTS)
    check_benchmark(TempCompass(), items)
    assert len(items) == 8
    assert items[0].uid == "tempcompass/0-direction-0"
    meta = {"77": {"eval_dim": {"direction": {"type": "object motion"}, "speed": None}}}
    (tmp_path / "tempcompass" / "meta_info.json").write_text(json.dumps(meta))
    again = [*TempCompass().load(BenchmarkPaths(folder=tmp_path / "tempcompass"))]
    assert {item.groups["fine_aspect"] for item in again} == {("object motion",)}


def test_captions_are_asked_for_by_the_question_alone(release) -> None:
    item = one(release, "captioning")
    assert TempCompass().prompt(item, PromptStyle()).parts[1:] == ("Describe the video.",)


@pytest.mark.parametrize("text", ["Option 2", "2", "(2)", "B", "2. The cup falls.", "Option 2: The cup falls.", "The cup falls."])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_the_second_of_two_captions(release, text, mode) -> None:
    item = one(release, "caption_matching")
    assert TempCompass().parse(item, text, mode) == "B"
    assert TempCompass().parse(item, f"<think>1</think>The answer is: {text}", mode) == "B"


def test_captions_by_letter(release) -> None:
    item = one(release, "caption_matching", NAMED)
    assert [TempCompass().parse(item, text, "lenient") for text in ("Caption B: It falls.", "Caption A")] == ["B", "A"]


@pytest.mark.parametrize("text", ["B", "B. rising", "B) up", "rising"])
def test_choices(release, text) -> None:
    assert TempCompass().parse(one(release, "multi-choice"), text, "lenient") == "B"


def test_a_judge_decides_where_no_rule_does(release) -> None:
    bench, item, asked = TempCompass(), one(release, "multi-choice"), []
    answer = bench.parse(item, "It goes upwards.", "lenient")
    scores = bench.score(item, answer, None)
    assert (answer, scores) == ("It goes upwards.", {"accuracy": 0.0})
    assert bench.needs_judge(item, answer, scores)
    assert not bench.needs_judge(item, "A", scores)
    assert not bench.needs_judge(item, None, scores)
    assert bench.judge(item, answer, answer, lambda prompt: asked.append(prompt) or "Correct") == {"accuracy": 1.0}
    assert "B. rising" in asked[0]
    assert bench.parse(item, "<think>It goes", "lenient") is None


@pytest.mark.parametrize(("letter", "right"), [("B", 1.0), ("The best choice is A.", 0.0)])
def test_a_caption_is_right_when_the_judge_answers_from_it(release, letter, right) -> None:
    item = one(release, "captioning")
    assert TempCompass().needs_judge(item, "A cup goes up.", {"accuracy": 0.0})
    assert TempCompass().judge(item, "A cup goes up.", "", lambda prompt: letter) == {"accuracy": right}


def test_captions_may_be_left_out(tmp_path, release) -> None:
    release(TempCompass(), TABLES)
    found = [*TempCompass(captioning=False).load(BenchmarkPaths(folder=tmp_path / "tempcompass"))]
    assert [isinstance(each, Skipped) for each in found] == [False, True, False, False]


def test_accuracy_by_style_and_aspect(release) -> None:
    items = release(TempCompass(), TABLES)
    scored = [ScoredRow(item=item, answer="", scores={"accuracy": right}) for item, right in zip(items, (1, 0, 1, 0), strict=True)]
    found = TempCompass().aggregate(scored)
    assert (found["accuracy"], found["style=captioning/accuracy"], found["aspect=direction/accuracy"]) == (50.0, 0.0, 50.0)
    assert found["style_aspect=caption_matching direction/accuracy"] == 100.0


def test_styles_that_nobody_knows(release) -> None:
    with pytest.raises(DataError, match="unknown style 'riddles'"):
        release(TempCompass(), {"riddles/test-0.parquet": [{**BASE, **YES}]})
