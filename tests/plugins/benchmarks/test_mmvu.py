"""MMVU. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import DataError, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.mmvu import MMVU

ROW = {
    "id": "validation_12",
    "video": "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main/videos/Art/3.mp4",
    "youtube_url": "https://www.youtube.com/watch?v=x",
    "question_type": "multiple-choice",
    "metadata": {"subject": "Art", "textbook": "", "knowledge": [], "rationale": ""},
    "question": "Which style?",
    "choices": {"A": "Cubism", "B": "Dada", "C": "Baroque", "D": "Pop", "E": "Gothic"},
    "answer": "C",
}
OPEN = {
    **ROW,
    "id": "validation_13",
    "question_type": "open-ended",
    "choices": {letter: "" for letter in "ABCDE"},
    "answer": "Huffman coding",
    "video": "videos/Computer_Science/4.mp4",
}


def test_real_records(records) -> None:
    items = records(MMVU())
    check_benchmark(MMVU(), items)
    assert items[0].groups == {"form": ("mc",), "discipline": ("Healthcare",), "subject": ("Clinical_Medicine",)}
    assert items[1].groups["discipline"] == ("Engineering",)
    assert items[0].video == "videos/Clinical_Medicine/7.mp4"


def test_official_rows(release) -> None:
    items = release(MMVU(), {"validation.json": [ROW, OPEN]})
    check_benchmark(MMVU(), items)
    choice, text = items
    assert (choice.video, choice.gold, choice.choices[2], choice.judge) == ("videos/Art/3.mp4", "C", "Baroque", None)
    assert (text.task, text.choices, text.gold, text.judge) == ("open", (), "Huffman coding", "equiv")
    with pytest.raises(DataError, match="'Magic', the folder of the video, is no known subject"):
        release(MMVU(), {"validation.json": [{**ROW, "video": "videos/Magic/3.mp4"}]})


def test_choices_go_by_rule_and_the_judge_sees_the_question(release) -> None:
    own = MMVU()
    choice, text = release(own, {"validation.json": [ROW, OPEN]})
    asked = []
    assert not own.needs_judge(choice, "A", own.score(choice, "A", None))
    assert own.needs_judge(text, "a prefix code", own.score(text, "a prefix code", None))
    assert own.judge(text, "a prefix code", "", lambda prompt: asked.append(prompt) or "Judgement: 0") == {"accuracy": 0.0}
    assert "Which style?" in asked[0]
    found = own.aggregate(
        [ScoredRow(item=choice, answer="C", scores={"accuracy": 1}), ScoredRow(item=text, answer="x", scores={"accuracy": 0})]
    )
    assert (found["accuracy"], found["form=mc/accuracy"], found["form=open/accuracy"]) == (50, 100, 0)
