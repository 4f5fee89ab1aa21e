"""Throws random and mutated responses at every reward: nothing may be raised, hang, leave [0, 1] or keep memory.

    python benchmarks/fuzz_rewards.py [--count 100000] [--math-count 5000] [--executed-count 1000] [--only NAME,...] [--seed 0]

Prints JSON: by reward what was raised (kind, how often, the first response), the slowest response, the mean accuracy, and the
memory of this process and its workers after a tenth of the responses and at the end. A response that takes longer than a minute
ends the script with a traceback. Exit status 1 when anything was raised. Responses depend on the seed alone.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _made import MAKERS, made
from attrs import define, field

from evr1_core.api import BoxSpace, ConfigError, PluginError, Reward, Sample
from evr1_core.config.schema import RewardConfig
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.scoring import Response, Scorer

RECORDS = 200  # a reward is asked about as many records, in turn
HANGS = 60  # seconds
LONG = 100_000  # characters of one response in 500
MIB = 1 << 20
FRAME = BoxSpace(kind="norm1000", width=640, height=480)
EXECUTED = "code_executed"
TESTED = "def f(n):\n    return n + 1\n"
TESTS = ["assert f(1) == 2", "assert f(-1) == 0"]
PIECES = (
    *(
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "<Answer >",
        "\\boxed{",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        "\\",
        "$",
        "*",
        "_",
    ),
    *(
        "```",
        "```svg\n",
        "```python\n",
        "\n",
        "\t",
        " ",
        ",",
        ".",
        ":",
        ";",
        "-",
        "/",
        "<",
        ">",
        "&",
        "&#x0;",
        "&lol;",
        "<!--",
        "]]>",
    ),
    *("A", "B. ", "(C)", " or ", " and ", "The answer is ", "答案是", "yes", "no", "tie", "Response 2 is better", "both"),
    *(
        "0",
        "1",
        "-2.5",
        "1e9",
        "1e999",
        "%",
        "½",
        "²",
        "×10^",
        "twenty-",
        "nan",
        "inf",
        "Infinity",
        "\\frac{1}{2}",
        "\\sqrt",
        "^{",
        "_1",
    ),
    *('{"time": [1, 2]}', '{"boxes": {"3": [1, 2, 3, 4]}}', "[0, 0, 1, 1]", "1:02", " to ", "NaN", "null", "true", "[[[[", "]]]]"),
    *("x = ", "\\{1,2\\}", "(0, 1]", "9^{9^{9^{9}}}", "\\int_0^1", "\\sum", "!", "\\infty", "\\begin{pmatrix}", "\\text{and}"),
    *(
        "<svg>",
        "</svg>",
        "<rect/>",
        '<svg xmlns="http://www.w3.org/2000/svg">',
        "<html>",
        "<p>",
        "</p>",
        "<!DOCTYPE x [",
        "<![CDATA[",
    ),
    *("def f(x):\n    ", "return x", "while True: pass", "import os", "lambda: ", "f'{", "\\N{BULLET}", "0x", "'''"),
    *(
        "\x00",
        "\ud83d",
        "\ud800",
        "\u0301",
        "ﷺ",
        "\u202e",
        "\u202f",
        "\ufeff",
        "ß",
        "İ",
        "猫",
        "กำ",
        "한",
        "\U0001f469\u200d\U0001f466",
    ),
)


@define
class Found:
    """What one reward did with its responses."""

    responses: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    slowest: str = ""
    unjudged: int = 0
    accuracy: float = 0.0
    raised: dict[str, int] = field(factory=dict)
    first: dict[str, str] = field(factory=dict)
    memory_mib: list[float] = field(factory=list)

    def report(self) -> dict[str, Any]:
        judged = max(1, self.responses - self.unjudged - sum(self.raised.values()))
        return {
            "responses": self.responses,
            "per_s": round(self.responses / max(self.seconds, 1e-9), 1),
            "slowest_s": round(self.slowest_s, 3),
            "slowest": self.slowest,
            "mean_accuracy": round(self.accuracy / judged, 4),
            "raised": self.raised,
            "first_raised_by": self.first,
            "memory_mib": self.memory_mib,
        }


def responses(plugin: str, count: int, seed: int) -> Iterator[tuple[Sample, str]]:
    """Records, each with a random or mutated response."""
    rng = random.Random(f"{plugin}/{seed}")
    records = [_executed(number) if plugin == EXECUTED else made(plugin, rng, number) for number in range(RECORDS)]
    for number in range(count):
        sample, text = records[number % RECORDS]
        yield sample, _response(rng, sample, text, number)


def _executed(number: int) -> tuple[Sample, str]:
    sample = Sample(uid=f"{EXECUTED}/{number}", task="code", problem="", answer=TESTED, extra={"tests": TESTS})
    return sample, f"<think></think><answer>{TESTED}</answer>"


def _response(rng: random.Random, sample: Sample, text: str, number: int) -> str:
    gold = f"<think></think><answer>{sample.answer}</answer>"
    start = rng.choice([text, gold, sample.answer, ""])
    draft = _mutated(rng, start) if start else _random(rng)
    if rng.random() < 0.3:
        draft = f"<think></think><answer>{draft}</answer>"
    return (draft * (LONG // max(1, len(draft)) + 1))[:LONG] if number % 500 == 499 else draft


def _random(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return "".join(chr(rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000)])) for _ in range(60))
    return "".join(rng.choices(PIECES, k=rng.randint(0, 40)))


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([0, 1, 1, 2, 4, 12])):
        i, j = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        j = min(j, i + 30)
        text = text[:i] + rng.choice([rng.choice(PIECES), "", text[i:j] * 2, text[i:j][::-1], str(rng.randrange(1000))]) + text[j:]
    return text


def fuzz(plugin: str, reward: Reward, count: int, seed: int) -> Found:
    """Scores ``count`` responses, one after the other."""
    scorer, found = Scorer({plugin: reward}, {}, RewardConfig(), max_tokens=1), Found()
    for sample, text in responses(plugin, count, seed):
        _one(scorer, found, Response(sample=sample, text=text, boxes=FRAME if found.responses % 2 else None))
        if found.responses in (max(1, count // 10), count):
            found.memory_mib.append(_memory())
    return found


def _one(scorer: Scorer, found: Found, response: Response) -> None:
    found.responses += 1
    faulthandler.dump_traceback_later(HANGS, exit=True)
    start = time.perf_counter()
    try:
        (scored,) = scorer.score([response])
        found.unjudged += scored.accuracy is None
        found.accuracy += scored.accuracy or 0.0
    except Exception as error:  # noqa: BLE001  # to find out whether there is any is what this script is for
        kind = f"{type(error).__name__}: {str(error)[:120]}" if isinstance(error, PluginError) else type(error).__name__
        found.raised[kind] = found.raised.get(kind, 0) + 1
        found.first.setdefault(kind, f"{response.sample.answer[:200]!r} <- {response.text[:2000]!r}: {str(error)[:300]}")
    spent = time.perf_counter() - start
    faulthandler.cancel_dump_traceback_later()
    found.seconds += spent
    if spent > found.slowest_s:
        found.slowest_s, found.slowest = spent, f"{len(response.text)} characters: {response.text[:120]!r}"


def _memory() -> float:
    """Resident memory of this process and its children, in MiB."""
    own = str(os.getpid())
    pages = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if own in (folder.name, parent):
                pages += int((folder / "statm").read_text().split()[1])
        except OSError:  # it ended meanwhile
            continue
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MIB, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="responses a reward")
    parser.add_argument("--math-count", type=int, default=5_000, help="responses for math")
    parser.add_argument("--executed-count", type=int, default=1_000, help="responses whose code is executed")
    parser.add_argument("--only", default="", help="names of rewards, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    names = [*MAKERS, EXECUTED]
    report: dict[str, Any] = {}
    for name in [name for name in names if not args.only or name in args.only.split(",")]:
        count = {"math": args.math_count, EXECUTED: args.executed_count}.get(name, args.count)
        try:
            options = {"execute": True} if name == EXECUTED else {}
            reward = build_plugin("rewards", "evr1/code" if name == EXECUTED else f"evr1/{name}", options, place="fuzz")
        except (PluginError, ConfigError) as error:
            report[name] = {"skipped": str(error)}
            continue
        report[name] = fuzz(name, reward, count, args.seed).report()
        reward.close()
        print(f"{name}: {report[name]['responses']} responses, {report[name]['raised'] or 'nothing raised'}", file=sys.stderr)
    print(json.dumps(report, indent=2))
    return int(any(one.get("raised") for one in report.values()))


if __name__ == "__main__":
    sys.exit(main())
