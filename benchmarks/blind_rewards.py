"""What answers earn that were given without looking: `python benchmarks/blind_rewards.py` prints tasks and strategies.

300 made-up golds a task, drawn with a fixed seed: four options and both truth values equally often; counts from 1 to 10; distances
from 1 to 10, uniform; events of 3 to 18 s anywhere in a minute; boxes with sides of 10 to 60 % of a 640 x 480 frame, one a second;
captions of who does what where, twice; signs of one to five of ten words; sums from 1 to 10; responses 1 and 2 equally often;
drawings of one to four rectangles and circles, pages of two to four of six sections, functions with a loop or a condition.
`total` is what training pays with the published weights, format included.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen

from evr1_core.api import Reward, Sample
from evr1_core.config.schema import RewardConfig
from evr1_core.rollout.scoring import Response, Scorer

COUNT = 300
SECONDS = 60
WIDTH, HEIGHT = 640, 480
CAPTION_WHO = ("A man", "A woman", "The boy", "Two dogs", "A person in a red coat", "The chef", "A group of children", "The player")
CAPTION_WHERE = ("in the kitchen", "on the street", "beside a lake", "at the table", "in front of a house", "on a stage")
CAPTION_ACTS = (
    *("opens the door", "picks up a ball", "cuts an onion", "waves at the camera", "jumps over a fence", "sits down on the bench"),
    *("pours water into a glass", "points to the left", "runs away", "lifts a heavy box"),
)
CAPTION_WORDS = sorted({word for part in (*CAPTION_WHO, *CAPTION_WHERE, *CAPTION_ACTS) for word in part.split()})
SIGN_WORDS = ("EXIT", "GATE", "12", "SALE", "OPEN", "CLOSED", "STOP", "PARKING", "NORTH", "TAXI")
PAGE_SECTIONS = (
    "<h1>{0}</h1>",
    "<p>{0} {1} {2}.</p>",
    "<ul><li>{1}</li><li>{2}</li></ul>",
    "<table><tr><td>{0}</td><td>{1}</td></tr></table>",
    '<div class="note"><b>{1}</b> {2}</div>',
    "<form><label>{0}</label><input><button>{1}</button></form>",
)
OPTIONS = ("A. red", "B. green", "C. blue", "D. yellow")

Strategy = Callable[[Sample], str]  # a whole response, which may peek at the gold where it plays a lucky guess


@frozen
class Line:
    """One measured line: accuracy and total are means over the records of the task."""

    task: str
    strategy: str
    accuracy: float
    total: float


def records(task: str, golds: Iterable[object], options: Sequence[str] = ()) -> list[Sample]:
    """A record a gold."""
    texts = (gold if isinstance(gold, str) else json.dumps(gold) for gold in golds)
    return [Sample(uid=f"{task}/{n}", task=task, problem="", answer=text, options=tuple(options)) for n, text in enumerate(texts)]


def answering(answer: object) -> Strategy:
    """The same well-formed response to everything."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return lambda _: f"<think>It is so.</think><answer>{text}</answer>"


def peeking(answer: Callable[[dict[str, object]], object]) -> Strategy:
    """A well-formed response made from the gold."""
    return lambda sample: answering(answer(json.loads(sample.answer)))(sample)


def measure(reward: Reward, samples: Sequence[Sample], strategies: dict[str, Strategy]) -> Iterator[Line]:
    """A line for every strategy."""
    scorer = Scorer({"it": reward}, {}, RewardConfig(), max_tokens=1)
    for name, strategy in strategies.items():
        scored = scorer.score([Response(sample=sample, text=strategy(sample)) for sample in samples])
        accuracy = sum(one.accuracy or 0.0 for one in scored) / len(scored)
        yield Line(samples[0].task, name, accuracy, sum(one.total for one in scored) / len(scored))


def best(reward: Reward, samples: Sequence[Sample], name: str, answers: Iterable[object]) -> Line:
    """The line of the answer that earns most, named after it."""
    strategies = {f"{name}: {answer if isinstance(answer, str) else json.dumps(answer)}": answering(answer) for answer in answers}
    return max(measure(reward, samples, strategies), key=lambda line: line.total)


def choices(rng: random.Random) -> Iterator[Line]:
    """Multiple choice and truth values."""
    from evr1_plugins.rewards.boolean import Boolean
    from evr1_plugins.rewards.mcq import MultipleChoice

    samples = records("multiple choice", (rng.choice("ABCD") for _ in range(COUNT)), OPTIONS)
    yield best(MultipleChoice(), samples, "best constant", "ABCD")
    tricks = {
        "all letters, as a list": answering("A, B, C, D"),
        "all letters, as options": answering(" ".join(OPTIONS)),
        "A or B": answering("A or B"),
        "empty tags": lambda _: "<think></think><answer></answer>",
        "gold quoted in the reasoning": lambda sample: f"<think><answer>{sample.answer}</answer></think>I cannot tell.",
        "every letter in its own tags": lambda _: "".join(f"<answer>{letter}</answer>" for letter in "ABCD"),
    }
    yield from measure(MultipleChoice(), samples, tricks)
    truths = records("boolean", (rng.choice(["yes", "no"]) for _ in range(COUNT)))
    yield best(Boolean(), truths, "best constant", ["yes", "no"])
    yield from measure(Boolean(), truths, {"yes and no": answering("yes and no"), "Yes. No.": answering("Yes. No.")})


def quantities(rng: random.Random) -> Iterator[Line]:
    """Counts and regression."""
    from evr1_plugins.rewards.numerical import Numerical

    counts = records("counting", (rng.randint(1, 10) for _ in range(COUNT)))
    yield best(Numerical(), counts, "best constant", map(str, range(1, 11)))
    yield from measure(Numerical(), counts, {"all numbers": answering(", ".join(map(str, range(1, 11))))})
    distances = records("regression", (round(rng.uniform(1, 10), 2) for _ in range(COUNT)))
    yield best(Numerical(), distances, "best constant", (str(n / 4) for n in range(4, 41)))


def grounding(rng: random.Random) -> Iterator[Line]:
    """Spans, boxes, and both."""
    from evr1_plugins.rewards.spatial_iou import SpatialIoU
    from evr1_plugins.rewards.st_iou import SpatialTemporalIoU
    from evr1_plugins.rewards.temporal_iou import TemporalIoU

    golds = [_event(rng) for _ in range(COUNT)]
    spans = records("temporal grounding", ({"time": gold["time"]} for gold in golds))
    fixed = ({"time": [start, start + length]} for start in range(0, 40, 5) for length in (15, 30, 45) if start + length <= SECONDS)
    yield from measure(TemporalIoU(), spans, {"the whole video": answering({"time": [0, SECONDS]})})
    yield best(TemporalIoU(), spans, "best constant", fixed)
    boxes = records("spatial grounding", ({"boxes": next(iter(gold["boxes"].values()))} for gold in golds))  # type: ignore[attr-defined]
    whole, middle = [0, 0, WIDTH, HEIGHT], [_centred(share / 20) for share in range(4, 20)]
    huge = [-1e9, -1e9, 1e9, 1e9]
    yield from measure(
        SpatialIoU(), boxes, {"the whole frame": answering({"boxes": whole}), "a huge box": answering({"boxes": huge})}
    )
    yield best(SpatialIoU(), boxes, "best constant", ({"boxes": box} for box in middle))
    tubes = records("spatial temporal grounding", golds)
    tricks = {
        "the whole video and frame": answering({"time": [0, SECONDS], "boxes": {str(s): whole for s in range(SECONDS + 1)}}),
        "the whole video, no boxes": answering({"time": [0, SECONDS]}),
        "one perfect frame, whole video": peeking(lambda gold: {"time": [0, SECONDS], "boxes": _one_frame(gold)}),
        "one perfect frame, right span": peeking(lambda gold: {"time": gold["time"], "boxes": _one_frame(gold)}),
    }
    yield from measure(SpatialTemporalIoU(), tubes, tricks)
    tracks = records("tracking", ({"boxes": gold["boxes"]} for gold in golds))
    tricks = {
        "the whole frame, all seconds": answering({"boxes": {str(s): whole for s in range(SECONDS + 1)}}),
        "one perfect frame": peeking(lambda gold: {"boxes": _one_frame(gold)}),
    }
    yield from measure(SpatialTemporalIoU(), tracks, tricks)


def texts(rng: random.Random) -> Iterator[Line]:
    """Free text, text read from the picture, mathematics and preferences."""
    from evr1_plugins.rewards.math import Math
    from evr1_plugins.rewards.ocr import Ocr
    from evr1_plugins.rewards.open_ended import OpenEnded
    from evr1_plugins.rewards.preference import Preference

    captions = records("open ended", (_caption(rng) for _ in range(COUNT)))
    frequent = "The person in the video is walking to the left and then to the right of the room"
    yield best(OpenEnded(), captions, "best constant", [frequent, "the a and to in of is", "A man is standing in front of a table"])
    yield from measure(
        OpenEnded(), captions, {"the commonest word": answering("the"), "every word there is": answering(" ".join(CAPTION_WORDS))}
    )
    signs = records("ocr", (" ".join(rng.sample(SIGN_WORDS, rng.randint(1, 5))) for _ in range(COUNT)))
    yield best(Ocr(), signs, "best constant", SIGN_WORDS)
    yield from measure(Ocr(), signs, {"every word there is": answering(" ".join(SIGN_WORDS))})
    sums = records("math", (str(rng.randint(1, 10)) for _ in range(COUNT)))
    math = Math(workers=1)
    yield best(math, sums, "best constant", map(str, range(1, 11)))
    tricks = {
        "all values, as a list": answering(", ".join(map(str, range(1, 11)))),
        "all values, as a set": answering("\\{1,2,3,4,5,6,7,8,9,10\\}"),
        "an unknown": answering("x"),
        "an inequality": answering("0 < x < 11"),
    }
    yield from measure(math, sums, tricks)
    math.close()
    verdicts = records("preference", (rng.choice(["1", "2"]) for _ in range(COUNT)))
    yield best(Preference(), verdicts, "best constant", ["1", "2", "tie"])
    tricks = {"both, each better": answering("Response 1 is better. Response 2 is better."), "1 or 2": answering("1 or 2")}
    yield from measure(Preference(), verdicts, tricks)


def programs(rng: random.Random) -> Iterator[Line]:
    """Drawings, pages and programs."""
    from evr1_plugins.rewards.code import Code

    code = Code()
    drawings = records("svg code", (_drawing(rng) for _ in range(COUNT)))
    tricks = {
        "a grey square": answering(_sheet('<rect x="20" y="20" width="60" height="60" fill="#555"/>')),
        "a pale wash over the sheet": answering(_sheet('<rect width="100" height="100" fill="#fcfcfc"/>')),
        "every element there is": answering(_sheet("<rect/><circle/>" * 4)),
    }
    yield from measure(code, drawings, tricks)
    pages = records("html code", (_page(rng) for _ in range(COUNT)))
    sections = [section.format(*[""] * 3) for section in PAGE_SECTIONS]
    tricks = {
        "html and body alone": answering("<html><body></body></html>"),
        "a heading and a paragraph": answering(f"<html><body>{sections[0]}{sections[1]}</body></html>"),
        "every section there is": answering(f"<html><body>{''.join(sections)}</body></html>"),
        "every word there is": answering(f"<p>{' '.join(CAPTION_WORDS)}</p>"),
        "no tags": answering(" ".join(CAPTION_WORDS)),
    }
    yield from measure(code, pages, tricks)
    functions = records("code", (_function(rng) for _ in range(COUNT)))
    constant = "def f(a):\n    for b in range(9):\n        if b > 1:\n            a = a + b\n    return a\n"
    tricks = {
        "a loop with a condition": answering(constant),
        "the same, ten times": answering(constant * 10),
        "the shortest function": answering("def f(a): return a"),
        "pass": answering("pass"),
    }
    yield from measure(code, functions, tricks)
    code.close()


def _drawing(rng: random.Random) -> str:
    return _sheet("".join(_shape(rng) for _ in range(rng.randint(1, 4))))


def _sheet(shapes: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">{shapes}</svg>'


def _shape(rng: random.Random) -> str:
    x, y, size, colour = rng.randint(0, 80), rng.randint(0, 80), rng.randint(5, 40), rng.randrange(1 << 24)
    if rng.random() < 0.5:
        return f'<circle cx="{x}" cy="{y}" r="{size / 2}" fill="#{colour:06x}"/>'
    return f'<rect x="{x}" y="{y}" width="{size}" height="{rng.randint(5, 40)}" fill="#{colour:06x}"/>'


def _page(rng: random.Random) -> str:
    sections = rng.sample(PAGE_SECTIONS, rng.randint(2, 4))
    filled = (section.format(rng.choice(CAPTION_WHO), rng.choice(CAPTION_ACTS), rng.choice(CAPTION_WHERE)) for section in sections)
    return f"<html><body>{''.join(filled)}</body></html>"


def _function(rng: random.Random) -> str:
    number, operator, relation = rng.randint(1, 99), rng.choice("+-*"), rng.choice(["<", ">", "=="])
    loop = f"    for item in range({number}):\n        total = total {operator} item\n"
    condition = f"    if total {relation} {number}:\n        return len(name)\n"
    start, end = rng.choice(["0", "1", "[]", "name"]), rng.choice(["total", "str(total)", f"total {operator} {number}"])
    return f"def work(name):\n    total = {start}\n{rng.choice([loop, condition, loop + condition])}    return {end}"


def _caption(rng: random.Random) -> str:
    who, where = rng.choice(CAPTION_WHO), rng.choice(CAPTION_WHERE)
    first, second = rng.sample(CAPTION_ACTS, 2)
    return f"{who} {first} {where} and then {second}."


def _event(rng: random.Random) -> dict[str, object]:
    length = rng.randint(3, 18)
    start = rng.randint(0, SECONDS - length)
    width, height = rng.uniform(0.1, 0.6) * WIDTH, rng.uniform(0.1, 0.6) * HEIGHT
    x, y = rng.uniform(0, WIDTH - width), rng.uniform(0, HEIGHT - height)
    box = [round(side, 1) for side in (x, y, x + width, y + height)]
    return {"time": [start, start + length], "boxes": {str(second): box for second in range(start, start + length + 1)}}


def _centred(share: float) -> list[float]:
    x, y = round(WIDTH * (1 - share) / 2), round(HEIGHT * (1 - share) / 2)
    return [x, y, WIDTH - x, HEIGHT - y]


def _one_frame(gold: dict[str, object]) -> dict[str, object]:
    boxes = gold["boxes"]
    assert isinstance(boxes, dict)
    return dict([next(iter(boxes.items()))])


def lines() -> list[Line]:
    """All lines, the same each time."""
    rng = random.Random(0)
    return [*choices(rng), *quantities(rng), *grounding(rng), *texts(rng), *programs(rng)]


def table(measured: Sequence[Line]) -> str:
    """Markdown."""
    rows = [f"| {line.task} | {line.strategy} | {line.accuracy:.3f} | {line.total:.3f} |" for line in measured]
    return "\n".join(["| task | strategy | accuracy | total |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table(lines()))
