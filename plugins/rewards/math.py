"""Mathematics: symbolic equality."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, validators

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult
from evr1_core.api.answers import gold_text, option_letters
from evr1_core.api.workers import Failed, Workers
from evr1_plugins.rewards._latex import LONGEST

_FIRST = {"gold": "\\frac{1}{2}", "answer": "x = 0.5"}  # warms the parser up


@define(kw_only=True)
class Math(Reward):
    r"""1 when the answer is symbolically equal to the gold, else 0.

    Read as a whole by `math-verify`, in a worker process that is killed at the limit of processor time: what takes longer is wrong.
    (One that the machine holds up for ten times as long is not judged.) Numbers agree to six decimals, those below 1e-5 to a
    millionth of their size. Sets have no order, tuples and intervals do; an equation equals another one only as a whole, and
    ``x = 5`` answers 5. In prose the one delimited expression or the one number counts; several that differ are no answer. A gold
    letter with options goes by the rule of multiple choice.

    Raises BadGoldError when the gold cannot be read. Source: Math-Verify (github.com/huggingface/Math-Verify).
    """

    api = 1
    tasks = frozenset({"math", "mathematics"})

    time_limit: float = field(default=2.0, validator=validators.gt(0), metadata={"help": "processor seconds for one comparison"})
    workers: int = field(default=2, validator=validators.ge(1), metadata={"help": "processes that compare"})
    _pool: Workers = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        target = "evr1_plugins.rewards._equal:compare"
        self._pool = Workers(target, size=self.workers, time_limit=self.time_limit, first=_FIRST)

    def score(self, item: RewardInput) -> RewardResult:
        return self.score_batch([item])[0]

    def score_batch(self, items: Sequence[RewardInput]) -> list[RewardResult]:
        golds = [gold_text(item.sample) for item in items]
        results: list[RewardResult | None] = [_quick(item, gold) for item, gold in zip(items, golds, strict=True)]
        asked = [row for row, result in enumerate(results) if result is None]
        answers = self._pool.ask_all([{"gold": golds[row], "answer": items[row].answer} for row in asked])
        for row, answer in zip(asked, answers, strict=True):
            results[row] = _result(items[row], answer)
        return [result for result in results if result is not None]

    def close(self) -> None:
        self._pool.close()


def _quick(item: RewardInput, gold: str) -> RewardResult | None:
    """What needs no comparing: no answer, one that is too long, and letters."""
    answer = (item.answer or "").strip()
    if not answer or len(answer) > LONGEST:
        return RewardResult(accuracy=0.0, parsed=False, note="too long for an answer" if answer else "no answer")
    options = item.sample.options
    letters = option_letters(gold, options) if options and re.fullmatch(r"[^A-Za-z0-9]*[A-Za-z][^A-Za-z0-9]*", gold) else None
    if letters is None:
        return None
    guess = option_letters(answer, options)
    if guess is None:
        return RewardResult(accuracy=0.0, parsed=False, note="no single option chosen")
    return RewardResult(accuracy=float(guess == letters), parsed=True, note=f"chose {', '.join(sorted(guess))}")


def _result(item: RewardInput, answer: Mapping[str, Any] | Failed) -> RewardResult:
    if isinstance(answer, Failed):
        held_up = answer.reason == "stalled"
        return RewardResult(accuracy=None if held_up else 0.0, parsed=False, note=f"not compared: {answer.detail}")
    if not answer["gold"]:
        raise BadGoldError(item.sample, "a mathematical expression")
    if not answer["parsed"]:
        return RewardResult(accuracy=0.0, parsed=False, note="no single expression")
    return RewardResult(accuracy=float(answer["equal"]), parsed=True, note="equal" if answer["equal"] else "not equal")
