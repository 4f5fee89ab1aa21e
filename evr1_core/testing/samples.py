"""One made-up record of every problem type that the built-in rewards serve."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from evr1_core.api import Sample

LETTERS = ("A. red", "B. green", "C. blue")
SENTENCE = "A red square moves to the left and stops at the wall."
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><rect x="8" y="8" width="40" height="24" fill="red"/></svg>'
HTML = "<html><body><h1>Results</h1><p class='note'>Three of four</p></body></html>"
PYTHON = "def area(width, height):\n    return width * height\n"
BOXES = {"1": [100, 120, 300, 360], "2": [110, 120, 310, 360], "3": [120, 120, 320, 360]}


def sample(task: str, answer: str, options: Sequence[str] = (), problem: str = "What is shown?") -> Sample:
    """A record of ``task`` with a gold answer, for a test."""
    return Sample(uid=f"testing/{task}", task=task, problem=problem, answer=answer, options=tuple(options), origin="testing")


SAMPLES: Mapping[str, Sample] = {
    task: sample(task, answer, options)
    for tasks, answer, options in (
        (("multiple choice",), "B", LETTERS),
        (("numerical", "number", "counting"), "3", ()),
        (("regression",), "2.5", ()),
        (("temporal grounding",), json.dumps({"time": [1.5, 4.0]}), ()),
        (("spatial grounding",), json.dumps([100, 120, 300, 360]), ()),
        (("spatial temporal grounding",), json.dumps({"time": [1.0, 3.0], "boxes": BOXES}), ()),
        (("tracking",), json.dumps({"boxes": BOXES}), ()),
        (("open ended", "video qa", "video description", "free form", "caption"), SENTENCE, ()),
        (("math", "mathematics"), "\\frac{1}{2}", ()),
        (("ocr",), "EXIT 42 NORTH", ()),
        (("boolean", "binary classification", "yes/no"), "yes", ()),
        (("svg code",), SVG, ()),
        (("html code",), HTML, ()),
        (("code", "python", "python code", "code (python)"), PYTHON, ()),
        (("llava", "critic", "preference"), "2", ()),
    )
    for task in tasks
}
