"""Yes or no."""

from __future__ import annotations

from attrs import define

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult
from evr1_core.api.answers import gold_text, truth


@define(kw_only=True)
class Boolean(Reward):
    """1 when answer and gold state the same truth value, else 0.

    The first word decides: yes/no, true/false, 1/0, correct/incorrect, 是/否, はい/いいえ, followed by nothing or by a clause after
    punctuation; or a cue ("the answer is yes") does. Both values as answers ("yes and no") are no answer; "no" inside "notice" is
    none.

    Raises BadGoldError when the gold states no truth value. Source: BoolQ (arXiv:1905.10044).
    """

    api = 1
    tasks = frozenset({"boolean", "binary classification", "yes/no"})

    def score(self, item: RewardInput) -> RewardResult:
        gold = truth(gold_text(item.sample))
        if gold is None:
            raise BadGoldError(item.sample, "a truth value, such as yes or false")
        guess = truth(item.answer)
        if guess is None:
            return RewardResult(accuracy=0.0, parsed=False, note="no single truth value")
        return RewardResult(accuracy=float(guess == gold), parsed=True, note=str(guess).lower())
