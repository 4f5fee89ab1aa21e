"""Makes records and scores extracted answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evr1_core.api import BoxSpace, Reward, RewardInput, RewardResult, Sample

Score = Callable[..., RewardResult]


@pytest.fixture(name="record", scope="session")
def _record() -> Callable[..., Sample]:
    """A record with a gold of any JSON type; further keywords become its extra fields."""

    def record(task: str, gold: Any, options: tuple[str, ...] = (), **extra: Any) -> Sample:
        answer = gold if isinstance(gold, str) else json.dumps(gold)
        return Sample(uid="r1", task=task, problem="", answer=answer, options=options, origin="a.jsonl:1", extra=extra)

    return record


@pytest.fixture(name="score", scope="session")
def _score() -> Score:
    """The result for an extracted answer, given as text or as a JSON value."""

    def score(reward: Reward, sample: Sample, answer: Any, boxes: BoxSpace | None = None) -> RewardResult:
        text = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
        return reward.score(RewardInput(sample=sample, response=text or "", answer=text, boxes=boxes))

    return score
