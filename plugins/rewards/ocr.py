"""Text read from the picture."""

from __future__ import annotations

from attrs import define, field

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult
from evr1_core.api.answers import gold_text
from evr1_core.api.answers.text import normalised
from evr1_core.api.metrics import word_error_rate
from evr1_plugins.rewards._words import chunks, numbered


@define(kw_only=True)
class Ocr(Reward):
    """``1 - word error rate``, clipped to [0, 1]: insertions, deletions and substitutions over the number of the gold's words.

    Words are what stands between blanks, punctuation included; single characters in Chinese, Japanese, Thai, Khmer and Lao. Both
    texts are compared in NFKC, case folded unless ``case_sensitive``.

    Raises BadGoldError when the gold is empty. Source: the Levenshtein distance over words, as in speech and text recognition.
    """

    api = 1
    tasks = frozenset({"ocr"})

    case_sensitive: bool = field(default=False, metadata={"help": "count a letter of another case as an error"})

    def score(self, item: RewardInput) -> RewardResult:
        gold = self._words(gold_text(item.sample))
        if not gold:
            raise BadGoldError(item.sample, "a text")
        guess = self._words(item.answer or "")
        if not guess:
            return RewardResult(accuracy=0.0, parsed=False, note="no text")
        rate = word_error_rate(*numbered(guess, gold))
        return RewardResult(accuracy=1.0 - rate, parsed=True, note=f"word error rate {rate:.3f}, at most 1")

    def _words(self, text: str) -> list[str]:
        text = normalised(text)
        return chunks(text if self.case_sensitive else text.casefold())
