"""Any text, of any length: a finite value in [0, 1] within a second, and nothing raised."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evr1_core.api import BoxSpace, Reward, RewardInput
from evr1_core.api.answers import extract
from evr1_core.testing import SAMPLES
from evr1_plugins.rewards.boolean import Boolean
from evr1_plugins.rewards.code import Code
from evr1_plugins.rewards.mcq import MultipleChoice
from evr1_plugins.rewards.numerical import Numerical
from evr1_plugins.rewards.ocr import Ocr
from evr1_plugins.rewards.open_ended import OpenEnded
from evr1_plugins.rewards.preference import Preference
from evr1_plugins.rewards.spatial_iou import SpatialIoU
from evr1_plugins.rewards.st_iou import SpatialTemporalIoU
from evr1_plugins.rewards.temporal_iou import TemporalIoU

RULES = [MultipleChoice(), Numerical(), TemporalIoU(), SpatialIoU(), SpatialTemporalIoU(), Boolean()]
REWARDS = [*RULES, OpenEnded(), Ocr(), Preference(), Code()]
LENGTH = 100_000
SECONDS = 1.0  # of processor time
FRAME = BoxSpace(kind="norm1000", width=640, height=480)

# pieces that the readers look for, so that random texts of them reach every branch
PIECES = [
    *(
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "\\boxed{",
        "}",
        "{",
        "[",
        "]",
        "(",
        ")",
        '"',
        "\\",
        "$",
        "*",
        "_",
        "```",
        "\n",
        " ",
    ),
    *("A", "B. ", "(C)", " or ", " and ", ", ", "The answer is ", "Answer: ", "答案是", "a ", "I ", "because ", "A red car"),
    *("1", "-2.5", ",000", "1e9", "1e999", "%", "/", "½", "²", "×10^", "twenty-", "one ", "\\frac{1}{2}", "nan", "inf"),
    *(
        '{"time": [1, 2]}',
        '{"boxes": ',
        '{"3": [1, 2, 3, 4]}',
        "[0, 0, 1, 1]",
        "1:02",
        " to ",
        "between ",
        "starts at ",
        "ends at ",
        " s",
        "-",
    ),
    *(
        "<svg>",
        "</svg>",
        '<rect width="9" height="9"/>',
        "<p>",
        "</p>",
        "<a href='x'>",
        "&amp;",
        "<!-- ",
        "def f(x):\n",
        " return ",
        "lambda: ",
    ),
    *("yes", "no", ". ", "; ", "\ud83d", "\x00", "\u0301", "ﷺ", "\u202f", "猫", "ก", "exit ", "yyyyyyying "),
    *("Response 1", "Response 2", " is better than ", "tie", "both", "not ", "> "),
]
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=300)
long_texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map(lambda pieces: ("".join(pieces) * LENGTH)[:LENGTH])


def check(reward: Reward, response: str) -> None:
    for task in sorted(reward.tasks):
        for answer in (extract(response), response):
            item = RewardInput(sample=SAMPLES[task], response=response, answer=answer, boxes=FRAME)
            result = reward.score(item)
            assert result.accuracy is not None
            assert math.isfinite(result.accuracy)
            assert 0 <= result.accuracy <= 1
            assert result.parsed or result.accuracy == 0


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: type(reward).__name__)
@given(text=texts)
@settings(max_examples=150, deadline=None)
def test_any_text(reward: Reward, text: str) -> None:
    check(reward, text)


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: type(reward).__name__)
@given(text=long_texts)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.data_too_large])
def test_long_texts_take_linear_time(reward: Reward, text: str) -> None:
    assert seconds_for(reward, text) < SECONDS


@pytest.mark.parametrize("reward", [SpatialIoU(), SpatialTemporalIoU()], ids=lambda reward: type(reward).__name__)
@pytest.mark.parametrize("piece", ["{}[]", "[1]", "[[[[{}]]]]", '["', "]["])
def test_brackets_take_well_below_a_second(reward: Reward, piece: str) -> None:
    text = (piece * LENGTH)[:LENGTH]
    assert min(seconds_for(reward, text) for _ in range(2)) < 0.8 * SECONDS


def seconds_for(reward: Reward, text: str) -> float:
    """Processor time of extracting and scoring; what workers spend has a limit of its own."""
    start = time.process_time()
    reward.score(RewardInput(sample=SAMPLES[min(reward.tasks)], response=text, answer=text, boxes=FRAME))
    extract(text)
    extract(text, mode="lenient")
    return time.process_time() - start
