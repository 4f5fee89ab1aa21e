"""Sampled responses with their rewards, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evr1_core.rollout.groups import Group
from evr1_core.rollout.scoring import Scored


def response_rows(groups: Sequence[Group], scores: Sequence[Sequence[Scored]]) -> list[dict[str, Any]]:
    """One row a response: uid, task, prompt text, response, gold, total, every component, and where it comes from."""
    return [
        {
            "uid": group.prompt.sample.uid,
            "task": group.prompt.sample.task,
            "prompt": group.prompt.text,
            "response": response.text,
            "answer": group.prompt.sample.answer,
            "reward": score.total,
            **{f"reward/{name}": value for name, value in score.components.items()},
            "offline": response.offline,
            "truncated": response.truncated,
            "note": score.note,
        }
        for group, row in zip(groups, scores, strict=False)
        for response, score in zip(group.responses, row, strict=True)
    ]
