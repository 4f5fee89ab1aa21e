"""Free text: captions, descriptions and open questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Literal, get_args

from attrs import define, field, validators

from evr1_core.api import Reward, RewardInput, RewardResult
from evr1_core.api.answers import gold_text
from evr1_core.api.judge import JudgeClient
from evr1_plugins.rewards._grading import graded
from evr1_plugins.rewards._words import alike, f1, numbered, words

Scorer = Literal["rouge", "judge"]


@define(kw_only=True)
class OpenEnded(Reward):
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L in [0, 1], or the grade of a judge.

    With P and R the shares of the answer's and of the gold's n-grams (ROUGE-L: longest common subsequence) that the other has too,
    counts clipped: F1 = 2PR / (P + R). Tokens are stemmed words, and single characters in Chinese, Japanese, Thai, Khmer and Lao.
    Texts equal after NFKC, case and white-space folding score 1. `scorer: judge` asks a language model for a grade from 0 to 10;
    without a clear one the response is not judged.

    Raises BadGoldError when the gold is empty. Source: ROUGE (Lin, 2004, aclanthology.org/W04-1013).
    """

    api = 1
    tasks = frozenset({"open ended", "video qa", "video description", "free form", "caption"})

    scorer: Scorer = field(
        default="rouge", validator=validators.in_(get_args(Scorer)), metadata={"help": "rouge, or judge: a language model"}
    )
    judge: JudgeClient = field(factory=JudgeClient, metadata={"help": "endpoint and limits of the judge"})

    def __attrs_post_init__(self) -> None:
        if self.scorer == "judge":
            self.judge.check("rewards.open_ended.options.judge")
        else:
            words("warming")  # loads the stemmer's package, which takes seconds, before the first response

    def score(self, item: RewardInput) -> RewardResult:
        return self.score_batch([item])[0]

    def score_batch(self, items: Sequence[RewardInput]) -> list[RewardResult]:
        golds = [gold_text(item.sample) for item in items]
        if self.scorer == "judge":
            return graded(self.judge, items, golds)
        return [_rouge(item.answer or "", gold) for item, gold in zip(items, golds, strict=True)]


def _rouge(answer: str, gold: str) -> RewardResult:
    given, wanted = alike(answer), alike(gold)
    if not given:
        return RewardResult(accuracy=0.0, parsed=False, note="no text")
    if given == wanted:
        return RewardResult(accuracy=1.0, parsed=True, note="the same text")
    guess = words(answer)
    scores = rouge(guess, words(gold))
    note = "ROUGE-1 {:.3f}, ROUGE-2 {:.3f}, ROUGE-L {:.3f}".format(*scores)
    return RewardResult(accuracy=sum(scores) / 3, parsed=bool(guess), note=note if guess else "no words")


def rouge(guess: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of two token sequences."""
    from rapidfuzz.distance import LCSseq

    left, right = numbered(guess, gold)
    longest = LCSseq.similarity(left, right)
    return (
        _overlap(Counter(left), Counter(right)),
        _overlap(Counter(pairwise(left)), Counter(pairwise(right))),
        f1(longest, len(left), len(right)),
    )


def _overlap(guess: Counter[Hashable], gold: Counter[Hashable]) -> float:
    return f1((guess & gold).total(), guess.total(), gold.total())
