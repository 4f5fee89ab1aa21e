"""Records of benchmarks through parsing and scoring: every row of the published tables of replies, and worked measures."""

from __future__ import annotations

import json

import pytest
from attrs import define

from evr1_core.api import Benchmark, BoxSpace, DataError, EvalItem, PromptStyle, ScoredRow
from evr1_core.api import aggregates as agg
from evr1_core.api.answers import Tube
from evr1_core.api.grading import span_of
from evr1_core.api.questions import response
from evr1_core.testing import check_benchmark
from evr1_core.testing.benchmarks import FRAME


@define(kw_only=True)
class Plain(Benchmark):
    """Everything by default."""

    api = 1
    id = "plain"
    title = "Plain"
    size = 1


PLAIN = Plain()
KITES = ("a hat", "a dog", "the red kite", "nobody")


def item(task, gold=None, choices=(), **fields):
    labels = tuple("ABCDEFGHIJKLMN"[: len(choices)])
    base = {"uid": "plain/0", "bench": "plain", "question": "What is it?", "video": "v.mp4"}
    return EvalItem(**base | fields, task=task, gold=gold, choices=tuple(choices), labels=labels)


MC = item("mc", "C", KITES)
SIX = item("mc", "F", [*KITES, "a bird", "a car"])
PETS = item("mc", "B", ["cat", "a dog", "a bird", "a cow"])


@pytest.mark.parametrize(
    ("question", "reply", "expected"),
    [
        *((MC, reply, "C") for reply in ("C", "c", "(C)", "C.", "C)", "C:", "**C**", "\\boxed{C}")),
        *((MC, reply, "C") for reply in ("C. the red kite", "C) red kite", "Option C", "<answer>C. red kite</answer>")),
        *((MC, reply, "C") for reply in ("The answer is **C**.", "Answer: (C)", "The best answer is: C")),
        (MC, "So the answer is B. Wait, the hat is blue. The final answer is C", "C"),
        (MC, "<think>so the answer is A</think>Therefore, the final answer is: D", "D"),
        (MC, "<answer>A</answer> hmm, no. <answer>B</answer>", "B"),
        (PETS, "The answer is a dog", "B"),
        (MC, "Based on the video, he leaves.", None),
        (MC, "It is between A and B.", None),
        (SIX, "The final answer is: F", "F"),
        (MC, "The final answer is: F", None),
        (MC, "<think>the answer is B, but let me", None),
    ],
)
def test_letters(question, reply, expected):
    assert PLAIN.parse(question, reply, "lenient") == expected


def test_texts_alike_give_no_credit():
    twins = item("mc", "B", ["red", "blue", "blue", "green"])
    assert PLAIN.parse(twins, "The answer is blue", "lenient") is None
    assert PLAIN.score(twins, PLAIN.parse(twins, "B. blue", "lenient"), None) == {"accuracy": 1.0}


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        *((reply, 3.5) for reply in ("3.5", "about 3.5 meters", "Therefore, the final answer is: 3.5 m.")),
        ("7,243,000", 7243000.0),
        ("7.243e6", 7243000.0),
        ("three", 3.0),
        ("There are three.", 3.0),
        (".25", 0.25),
        ("1/4", 0.25),
        ("between 2 and 3", 3.0),
        ("I cannot tell", None),
    ],
)
def test_numbers(reply, value):
    answer = PLAIN.parse(item("regression", 1.0), reply, "lenient")
    assert (answer is None) == (value is None)
    assert value is None or float(answer) == value


def test_numeric_and_regression_scores():
    numeric = item("numeric", 4.0)
    assert PLAIN.score(numeric, PLAIN.parse(numeric, "4", "lenient"), None) == {"accuracy": 1.0}
    mra = {(3.0, 4.0): 0.6, (5.0, 10.0): 0.1, (8.0, 10.0): 0.7}  # guess, gold
    for (guess, gold), value in mra.items():
        assert PLAIN.score(item("regression", gold), str(guess), None) == {"mra": value}


@pytest.mark.parametrize(
    ("reply", "value"),
    [("a total of 5", "5"), ("twice", "2"), ("once", "1"), ("2 of 3 shown, so the count is 2", "2"), ("none", "0"), ("2.5", None)],
)
def test_counts(reply, value):
    assert PLAIN.parse(item("count", 2), reply, "lenient") == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes, it did", "yes"),
        ("No.", "no"),
        ("N", "no"),
        ("I do not know", None),
        ("I know it", None),
        ("Yes at first, then no", "yes"),
        ("<answer>no</answer>", "no"),
    ],
)
def test_yes_and_no(reply, value):
    assert PLAIN.parse(item("yesno", True), reply, "lenient") == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"time": [3.2, 5.1]}', (3.2, 5.1)),
        ('```json\n{"time": [3.2, 5.1]}\n```', (3.2, 5.1)),
        ('{"start": "00:12", "end": "00:19.5"}', (12, 19.5)),
        *((reply, (3.2, 5.1)) for reply in ("from 3.2 to 5.1 seconds", "3.2 - 5.1 seconds", "3.2s~5.1s", "3.2 – 5.1 seconds")),
        ("It starts at 4 s and ends at 9 s", (4, 9)),
        ("between 4 and 9 seconds", (4, 9)),
        ("00:12 to 00:19", (12, 19)),
        ("0:12-0:19", (12, 19)),
        ("01:02:03 - 01:02:10", (3723, 3730)),
        ("[90, 150]", (90, 150)),
        ("(90, 150)", (90, 150)),
        ("9.0 to 4.0 seconds", (4, 9)),
        ("around 12 seconds", None),
    ],
)
def test_spans(reply, value):
    assert span_of(PLAIN.parse(item("tgrounding", (1.0, 2.0)), reply, "lenient")) == value


def test_predictions_are_clamped_to_the_duration_and_golds_are_not():
    question = item("tgrounding", (20.0, 31.0), duration=30.0)
    answer = PLAIN.parse(question, "20 to 40 seconds", "lenient")
    assert span_of(answer) == (20, 30)
    assert PLAIN.score(question, answer, None)["iou"] == pytest.approx(10 / 11)


def test_span_scores_reach_their_thresholds():
    assert PLAIN.score(item("tgrounding", (0.0, 10.0)), '{"time": [0, 5]}', None) == {
        "iou": 0.5,
        "r1@0.3": 1.0,
        "r1@0.5": 1.0,
        "r1@0.7": 0.0,
    }


def test_tubes():
    """Gold seconds 4, 5, 6; predicted 5, 6, 7 with overlaps .5 and .7: mIoU .60, vIoU 1.2 / 4."""
    gold = Tube((4.0, 6.0), {4.0: (0, 0, 100, 100), 5.0: (0, 0, 100, 100), 6.0: (0, 0, 100, 100)})
    question = item("stgrounding", gold, size=(100, 100))
    boxes = {"5": [0, 0, 100, 50], "6": [0, 0, 100, 70], "7": [0, 0, 100, 100]}
    answer = PLAIN.parse(question, json.dumps({"time": [5, 7], "boxes": boxes}), "lenient")
    scores = PLAIN.score(question, answer, BoxSpace(kind="pixel", width=100, height=100))
    assert scores["miou"] == pytest.approx(0.6)
    assert scores["viou"] == pytest.approx(0.3)
    assert scores["tiou"] == pytest.approx(1 / 3)
    assert scores["score"] == pytest.approx(0.5 / 3 + 0.3)
    assert (scores["viou@0.3"], scores["viou@0.5"]) == (1.0, 0.0)
    assert PLAIN.score(item("stgrounding", Tube((4.0, 6.0), {})), answer, None).keys() == {"score", "tiou"}


def test_boxes_are_read_in_the_space_of_the_model():
    """W 640, H 480: norm1000 [250, 500, 750, 1000] is [160, 240, 480, 480]; of 320 x 240 resized pixels the half of that."""
    gold = Tube((9.0, 9.0), {9.0: (160, 240, 480, 480)})
    question = item("stgrounding", Tube((9.0, 10.0), gold.boxes))
    spaces = {
        "norm1000": [250, 500, 750, 1000],
        "resized": [80, 120, 240, 240],
        "pixel": [160, 240, 480, 480],
    }
    for kind, box in spaces.items():
        space = BoxSpace(kind=kind, width=640, height=480, resized_width=320, resized_height=240)
        answer = PLAIN.parse(question, json.dumps({"time": [9, 10], "boxes": [{"time": "9s", "bbox_2d": box}]}), "lenient")
        assert PLAIN.score(question, answer, space)["miou"] == pytest.approx(1.0), kind
    with pytest.raises(DataError, match="need the size of the frame"):
        PLAIN.score(question, answer, BoxSpace(kind="norm1000"))


def test_open_answers():
    question = item("open", "Three men.", judge="equiv")
    answer = PLAIN.parse(question, "<think>x</think>I see. Final Answer: three men", "lenient")
    scores = PLAIN.score(question, answer, None)
    assert (answer, scores, PLAIN.needs_judge(question, answer, scores)) == ("three men", {"accuracy": 1.0}, False)
    other = PLAIN.score(question, "3 men", None)
    assert (other, PLAIN.needs_judge(question, "3 men", other)) == ({"accuracy": 0.0}, True)
    assert not PLAIN.needs_judge(question, None, other)
    assert PLAIN.score(item("open", "1,000"), "1000.0", None) == {"accuracy": 1.0}


def test_a_caption_is_judged_by_the_question_that_it_must_answer():
    caption = item("caption_mc", "B", ["falls", "rises"], judge="caption_mc", meta={"mc_question": "Which way does it go?"})
    asked = []
    scores = PLAIN.judge(caption, "The ball rises.", "", lambda prompt: asked.append(prompt) or "B. rises")
    assert scores == {"accuracy": 1.0}
    assert '"The ball rises."' in asked[0]
    assert "A. falls\nB. rises" in asked[0]
    assert PLAIN.judge(caption, "It falls.", "", lambda prompt: "A") == {"accuracy": 0.0}


@pytest.mark.parametrize(
    "question",
    [
        MC,
        item("numeric", 7.5),
        item("regression", 2.4),
        item("count", 3),
        item("yesno", False),
        item("tgrounding", (1.5, 4.0)),
        item("stgrounding", Tube((1.0, 3.0), {1.0: (10, 20, 110, 220), 2.0: (20, 20, 120, 220)})),
        item("open", "a red kite", judge="equiv"),
    ],
    ids=lambda question: question.task,
)
def test_every_task_keeps_the_contract(question):
    assert question.options == tuple(f"{label}. {text}" for label, text in zip(question.labels, question.choices, strict=True))
    names = PLAIN.score(question, None, FRAME)
    benchmark = attrs_with_headline(next(iter(names)))
    check_benchmark(benchmark, [question])


def attrs_with_headline(metric):
    @define(kw_only=True)
    class Other(Plain):
        """Everything by default, with another headline."""

        api = 1
        metrics = (metric,)

    return Other()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"task": "mc", "gold": "E", "choices": KITES}, "the gold answer 'E' is not the label of one of its choices"),
        ({"task": "mc", "gold": None, "choices": KITES}, "the gold answer None is not the label"),
        ({"task": "numeric", "gold": "4"}, "the gold answer '4' is not a number"),
        ({"task": "numeric", "gold": True}, "the gold answer True is not a number"),
        ({"task": "count", "gold": 2.0}, "is not a whole number"),
        ({"task": "yesno", "gold": 1}, "is not True or False"),
        ({"task": "tgrounding", "gold": (3.0, 3.0)}, "is not a span"),
        ({"task": "stgrounding", "gold": Tube(None, {})}, "is not a Tube with a span"),
        ({"task": "open", "gold": " "}, "is not text, or None"),
        ({"task": "open", "gold": "x", "clip": (5.0, 2.0)}, "no clip of a video lies between 5.0 and 2.0 s"),
    ],
)
def test_records_that_nothing_could_be_scored_against(fields, problem):
    with pytest.raises(DataError, match=r"^a\.json:3: record 'plain/0': ") as caught:
        item(**fields, origin="a.json:3")
    assert problem in str(caught.value)


def test_prompts():
    direct, *_ = (part for part in PLAIN.prompt(MC, PromptStyle()).parts if isinstance(part, str))
    assert direct.splitlines()[:3] == ["What is it?", "Possible answer choices:", "A. a hat"]
    assert direct.endswith("The best answer is:")
    reason = PLAIN.prompt(MC, PromptStyle(form="reason")).parts[-1]
    assert '"Therefore, the final answer is: X"' in reason
    assert "<think>" in PLAIN.prompt(MC, PromptStyle(form="tags")).parts[-1]
    assert '{"time": [start, end]}' in PLAIN.prompt(item("tgrounding", (1.0, 2.0)), PromptStyle()).parts[-1]
    assert "No subtitles available." in PLAIN.prompt(MC, PromptStyle(subtitles="text")).parts[-1]
    assert response("mc", PromptStyle(form="tags"), "C").endswith("<answer>C</answer>")


def scored(value, **groups):
    return ScoredRow(item=item("open", "x", groups=groups), answer="", scores={"accuracy": value})


def test_aggregates():
    rows = [scored(1.0, kind=("a", "b")), scored(0.0, kind=("a",)), scored(1.0, kind=("c",))]
    assert PLAIN.aggregate(rows) == {
        "accuracy": pytest.approx(200 / 3),
        "kind=a/accuracy": 50.0,
        "kind=b/accuracy": 100.0,
        "kind=c/accuracy": 100.0,
    }
    assert agg.macro(rows, "kind") == pytest.approx(250 / 3)
    assert agg.macro(rows, "other") is None
    with pytest.raises(ValueError, match="mean of"):
        agg.percent([])
