"""Questions about made-up films, in the shape of users' data files."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from evr1_core.demo.scenes import COLOURS, COUNTS, DIRECTIONS, Scene

CHOICES = {
    "colour": ("What colour are the shapes?", tuple(COLOURS)),
    "direction": ("Which way do the shapes move?", DIRECTIONS),
    "count": ("How many shapes are there?", COUNTS),
}
WHEN = "When are the shapes visible?"
# The stored trajectories are those of a teacher that sees everything and often answers with another letter for these: after
# the supervised steps the model looks and is half right, and what it should have answered is for the rewards to teach.
CONFUSED = {"colour": {"blue": "yellow", "yellow": "blue"}, "direction": {"right": "left"}, "count": {"1": "2", "3": "2"}}
WRONG = 0.65  # share of the teacher's answers that are wrong where it confuses


def rows_of(scene: Scene, video: str) -> list[dict[str, Any]]:
    """The four records of one film: three with choices and one to find the span. Each has a stored trajectory, right or not."""
    return [*(_choice(scene, video, kind) for kind in CHOICES), _span(scene, video)]


def _choice(scene: Scene, video: str, kind: str) -> dict[str, Any]:
    question, options = CHOICES[kind]
    right = {"colour": scene.colour, "direction": scene.direction, "count": str(scene.count)}[kind]
    letter, said = ("ABCD"[options.index(option)] for option in (right, _teacher(scene, kind, right)))
    return _row(scene, video, kind, "multiple choice", question, letter, said) | {
        "options": [f"{label}. {option}" for label, option in zip("ABCD", options, strict=False)]
    }


def _teacher(scene: Scene, kind: str, right: str) -> str:
    """The option that the teacher chooses."""
    wrong = random.Random(f"{scene.seed}:{kind}").random() < WRONG
    return CONFUSED[kind].get(right, right) if wrong else right


def _span(scene: Scene, video: str) -> dict[str, Any]:
    answer = json.dumps({"time": [scene.start, scene.end]})
    return _row(scene, video, "span", "temporal grounding", WHEN, answer, answer)


def _row(scene: Scene, video: str, kind: str, task: str, question: str, answer: str, said: str) -> dict[str, Any]:
    stem = video.rsplit("/", 1)[-1].removesuffix(".mp4")
    return {
        "problem_id": f"{stem}-{kind}",
        "problem_type": task,
        "data_type": "video",
        "data_source": f"shapes {kind}",
        "problem": question,
        "options": [],
        "answer": f"<answer>{answer}</answer>",
        "videos": [video],
        "has_offline_trajectory": True,
        "offline_output": f"<think>{seen(scene)}</think><answer>{said}</answer>",
    }


def seen(scene: Scene) -> str:
    """What a stored trajectory says before it answers: number, colour, direction, first and last second."""
    return f"{scene.count} {scene.colour} {scene.direction} {scene.start} {scene.end}"


def blind(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same questions, each with the film of another question of its kind: what a model earns that does not look."""
    out = []
    for kind in dict.fromkeys(row["data_source"] for row in rows):
        own = [row for row in rows if row["data_source"] == kind]
        films = [row["videos"] for row in own]
        shifted = films[len(films) // 2 :] + films[: len(films) // 2]
        out += [row | {"videos": film, "problem_id": f"blind-{row['problem_id']}"} for row, film in zip(own, shifted, strict=True)]
    return out


def best_constant_iou(rows: Sequence[dict[str, Any]], seconds: int) -> tuple[float, tuple[int, int]]:
    """The mean overlap of the one fixed span, in whole seconds, that fits all of ``rows`` best: what can be had without looking."""
    from evr1_core.api.metrics import iou_1d

    golds = [tuple(json.loads(row["answer"].removeprefix("<answer>").removesuffix("</answer>"))["time"]) for row in rows]
    spans = [(start, end) for start in range(seconds) for end in range(start + 1, seconds + 1)]
    return max((sum(iou_1d(span, gold) for gold in golds) / len(golds), span) for span in spans)
