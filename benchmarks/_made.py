"""Made-up records and answers for the benchmarks of rewards: one maker a plugin, each drawing from a seeded generator."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping

from evr1_core.api import Sample

Maker = Callable[[random.Random], tuple[str, str, str, tuple[str, ...]]]  # task, gold, answer, options
WORDS = (
    *(
        "the",
        "a",
        "man",
        "woman",
        "child",
        "dog",
        "opens",
        "closes",
        "door",
        "window",
        "red",
        "blue",
        "small",
        "large",
        "garden",
        "car",
    ),
    *("street", "truck", "walks", "runs", "quickly", "slowly", "into", "out", "of", "behind", "before", "after", "then", "while"),
    *("jumps", "holds", "points", "camera", "table", "chair", "ball", "kitchen", "river", "bridge", "three", "seven", "again"),
)
FILLER = "The frames are looked at one after another, and what can be seen in them is compared with what was asked. "
LENGTH = 300  # characters of a response, about


def sentence(rng: random.Random, low: int = 8, high: int = 24) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high)))


def _mcq(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    options = tuple(f"{letter}. {sentence(rng, 2, 4)}" for letter in "ABCD")
    answer = rng.choice(["{}", "({})", "The answer is {}.", "{}. because it is so"]).format(rng.choice("ABCD"))
    return "multiple choice", rng.choice("ABCD"), answer, options


def _numerical(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    task = rng.choice(["numerical", "counting", "regression"])
    return task, f"{rng.uniform(0.1, 2000):.2f}", rng.choice(["{:.2f}", "{:,.2f} m", "{:.3e}"]).format(rng.uniform(0.1, 2000)), ()


def _span(rng: random.Random) -> list[float]:
    start = round(rng.uniform(0, 50), 1)
    return [start, round(start + rng.uniform(0.5, 20), 1)]


def _box(rng: random.Random) -> list[int]:
    x, y = rng.randint(0, 500), rng.randint(0, 400)
    return [x, y, x + rng.randint(1, 140), y + rng.randint(1, 80)]


def _temporal(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    start, end = _span(rng)
    answer = rng.choice([json.dumps({"time": [start, end]}), f"from {start} to {end} seconds", f"[{start}, {end}]"])
    return "temporal grounding", json.dumps({"time": _span(rng)}), answer, ()


def _tube(rng: random.Random) -> dict[str, object]:
    first = rng.randint(0, 20)
    last = first + rng.randint(1, 6)
    return {"time": [first, last], "boxes": {str(second): _box(rng) for second in range(first, last + 1)}}


def _st(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    return rng.choice(["spatial temporal grounding", "tracking"]), json.dumps(_tube(rng)), json.dumps(_tube(rng)), ()


def _spatial(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    return "spatial grounding", json.dumps({"boxes": _box(rng)}), json.dumps({"boxes": _box(rng)}), ()


def _open(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    return "open ended", sentence(rng), sentence(rng), ()


def _ocr(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    gold = sentence(rng)
    return "ocr", gold, " ".join(word for word in gold.split() if rng.random() > 0.2) or gold, ()


def _boolean(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    return "boolean", rng.choice(["yes", "no"]), rng.choice(["Yes", "no", "No, it stands still.", "true", "是"]), ()


def _preference(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    answers = ["1", "2", "tie", "Response 2 is better than Response 1.", "The first response is better.", "[[B]]"]
    return "preference", rng.choice(["1", "2", "tie"]), rng.choice(answers), ()


def _svg(rng: random.Random) -> str:
    shapes = "".join(_rect(rng) for _ in range(2))
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64">{shapes}</svg>'


def _rect(rng: random.Random) -> str:
    x, y, width, colour = rng.randint(0, 40), rng.randint(0, 40), rng.randint(1, 24), rng.randrange(1 << 24)
    return f'<rect x="{x}" y="{y}" width="{width}" height="9" fill="#{colour:06x}"/>'


def _html(rng: random.Random) -> str:
    return f"<html><body><h1>{sentence(rng, 2, 4)}</h1><p class='n{rng.randint(0, 9)}'>{sentence(rng, 5, 12)}</p></body></html>"


def _python(rng: random.Random) -> str:
    name, other, number = rng.choice(WORDS), rng.choice(WORDS), rng.randint(1, 99)
    lines = [
        f"def f_{name}(n):",
        f"    x_{other} = n * {number}",
        f"    for i in range(x_{other}):",
        "        n += i",
        "    return n",
    ]
    return "\n".join(lines)


def _code(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    task, draw = rng.choice([("svg code", _svg), ("html code", _html), ("code", _python)])
    return task, draw(rng), draw(rng), ()


def _math(rng: random.Random) -> tuple[str, str, str, tuple[str, ...]]:
    a, b, c = (rng.randint(1, 40) for _ in range(3))
    golds = [f"\\frac{{{a}}}{{{b}}}", f"{a}\\sqrt{{{b}}}", f"x = {a}", f"({a}, {b})", f"\\{{{a}, {b}, {c}\\}}", f"{a}x+{b}y={c}"]
    answers = [*golds, f"${a / b:.6g}$", f"$[{a}, {a + b}]$", f"${a}^{{{b}}}$", f"{a} and {b}", f"\\sin({a}) + \\pi"]
    return "math", rng.choice(golds), rng.choice(answers), ()


MAKERS: Mapping[str, Maker] = {
    "mcq": _mcq,
    "numerical": _numerical,
    "temporal_iou": _temporal,
    "st_iou": _st,
    "spatial_iou": _spatial,
    "open_ended": _open,
    "math": _math,
    "ocr": _ocr,
    "boolean": _boolean,
    "code": _code,
    "preference": _preference,
}


def made(plugin: str, rng: random.Random, number: int) -> tuple[Sample, str]:
    """A record of ``plugin`` and a well-formed response to it, of about 300 characters where the answer leaves room."""
    task, gold, answer, options = MAKERS[plugin](rng)
    sample = Sample(uid=f"{plugin}/{number}", task=task, problem="", answer=gold, options=options)
    room = max(0, LENGTH - len(answer) - len("<think></think><answer></answer>"))
    reasoning = (FILLER * (room // len(FILLER) + 1))[:room]
    return sample, f"<think>{reasoning}</think><answer>{answer}</answer>"
