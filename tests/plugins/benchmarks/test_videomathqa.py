"""VideoMathQA. The official rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.videomathqa import VideoMathQA

FIVE = {
    "question_id": "abc-24",
    "videoID": "abc",
    "category": "Counting",
    "length": "short",
    "question": "How many pieces?",
    "options": ["A. 29", "B. 25", "C. 28", "D. 22", "E. 31"],
    "answer": "A",
    "steps": '{"1": "Count."}',
}
PAIR = {**FIVE, "options": ["A. 29", "B. 25"]}
MCQ, BINARY = "mcq/test-00000-of-00001.parquet", "multi_binary/test-00000-of-00001.parquet"


def pairs(*questions):
    return [{**PAIR, "question_id": name, "mbinary_id": int(f"{name[-2:]}{n}")} for name in questions for n in range(1, 5)]


def test_real_records(records) -> None:
    items = records(VideoMathQA())
    check_benchmark(VideoMathQA(), items)
    first, five = items[0], items[5]
    assert (first.choices, first.gold, first.cluster) == (("1/2", "2/5"), "A", ("326500db-d0e4-4aef-8498-a5533a00dfcc-244", 2442))
    assert first.subtitle == "subtitles/326500db-d0e4-4aef-8498-a5533a00dfcc.srt"
    assert (len(five.choices), five.cluster) == (5, None)
    assert five.groups == {"category": ("Chart",), "length": ("long",), "form": ("five",)}


def test_official_rows(release) -> None:
    items = release(VideoMathQA(), {MCQ: [FIVE], BINARY: pairs("abc-24")})
    check_benchmark(VideoMathQA(), items)
    assert [item.cluster for item in items] == [None, *(("abc-24", number) for number in (241, 242, 243, 244))]
    assert {item.source_id for item in items} == {"abc-24"}
    assert len({item.uid for item in items}) == 5
    assert (items[0].video, items[0].subtitle) == ("videos/abc.mp4", "subtitles/abc.srt")


def test_pairs_count_together(release) -> None:
    items = release(VideoMathQA(), {MCQ: [FIVE, FIVE], BINARY: pairs("abc-24", "abc-25", "abc-26")[:-1]})
    right = [1, 0, *(1, 1, 1, 1), *(1, 1, 0, 1), *(1, 1, 1)]
    scored = [ScoredRow(item=item, answer="A", scores={"accuracy": score}) for item, score in zip(items, right, strict=True)]
    found = VideoMathQA().aggregate(scored)
    assert found["mcq"] == pytest.approx(50)
    assert found["mbin_strict"] == pytest.approx(50)  # the third question lacks a pair
    assert found["pooled"] == pytest.approx(100 * 11 / 13)
    assert found["form=pair/accuracy"] == pytest.approx(100 * 10 / 11)
    assert VideoMathQA().aggregate(scored[2:6])["mbin_strict"] == 100
    assert "mcq" not in VideoMathQA().aggregate(scored[2:6])


def test_guessing_gives_44(release) -> None:
    items = release(VideoMathQA(), {MCQ: [FIVE], BINARY: pairs("abc-24")})
    chance = [ScoredRow(item=item, answer="A", scores={"accuracy": 1 / len(item.choices)}) for item in items]
    assert VideoMathQA().aggregate(chance)["pooled"] == pytest.approx(44)
