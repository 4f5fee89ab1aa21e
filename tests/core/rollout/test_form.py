"""The format reward: one closed reasoning block, then one answer block, and nothing else."""

from __future__ import annotations

import pytest

from evr1_core.config.schema import FormatConfig
from evr1_core.rollout.form import in_form

GOOD = "<think>a</think><answer>b</answer>"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (GOOD, True),
        ("\n <think>\na\n</think>\n\n<answer>\nb\n</answer> \n", True),
        ("<THINK>a</THINK><Answer>b</Answer>", True),
        ("<think></think><answer></answer>", True),
        ("", False),
        ("b", False),
        ("<answer>b</answer>", False),
        ("<think>a</think>b", False),
        ("<think>a<answer>b</answer>", False),
        ("<think>a</think><answer>b", False),
        ("<think>a</think>so <answer>b</answer>", False),
        (f"so {GOOD}", False),
        (f"{GOOD} done", False),
        (f"{GOOD}<answer>b</answer>", False),
        (f"<think>a</think>{GOOD}", False),
        ("<answer>b</answer><think>a</think>", False),
        ("<think>a<answer>b</answer></think>", False),
        ("<think>the tags <answer></answer></think><answer>b</answer>", False),
        ("<thinking>a</thinking><answer>b</answer>", False),
        ("</think><answer>b</answer>", False),
    ],
)
def test_blocks(text: str, good: bool) -> None:
    assert in_form(text, FormatConfig()) is good


def test_response_that_starts_inside_the_reasoning() -> None:
    assert in_form("a</think><answer>b</answer>", FormatConfig(), opens_thinking=True)
    assert not in_form(GOOD, FormatConfig(), opens_thinking=True)
    assert not in_form("a <answer>b</answer>", FormatConfig(), opens_thinking=True)


def test_reasoning_may_be_dropped() -> None:
    config = FormatConfig(require_reasoning=False)
    assert in_form(" <answer>b</answer>", config)
    assert in_form(GOOD, config)
    assert not in_form("<think>a<answer>b</answer>", config)
    assert not in_form("so <answer>b</answer>", config)


def test_tag_is_configurable() -> None:
    config = FormatConfig(reasoning_tag="thought")
    assert in_form("<thought>a</thought><answer>b</answer>", config)
    assert not in_form(GOOD, config)
