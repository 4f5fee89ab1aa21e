"""Multiple choice: the letter."""

from __future__ import annotations

from attrs import define

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult
from evr1_core.api.answers import gold_text, option_letters


@define(kw_only=True)
class MultipleChoice(Reward):
    """1 when the chosen letter is the gold letter, else 0.

    The letter comes from an explicit cue ("the answer is (C)"), a lone or labelled letter ("C", "C. the red kite"), the exact
    text of one option, or a leading label before prose ("C because ..."). Labels are those of the options; without options, A to
    J. "A or B", a letter outside the labels, an article and a name are no answer. Several gold letters ("A,C") want the same set.

    Raises BadGoldError when the gold is no letter or text of an option. Rules and the first-match defects they avoid:
    arXiv:2604.16893 (EasyVideoR1) and its evaluator.
    """

    api = 1
    tasks = frozenset({"multiple choice"})

    def score(self, item: RewardInput) -> RewardResult:
        options = item.sample.options
        gold = option_letters(gold_text(item.sample), options)
        if gold is None:
            raise BadGoldError(
                item.sample, f"a letter or the text of one of its {len(options)} options" if options else "a letter, A to J"
            )
        guess = option_letters(item.answer, options)
        if guess is None:
            return RewardResult(accuracy=0.0, parsed=False, note="no single option chosen")
        return RewardResult(accuracy=float(guess == gold), parsed=True, note=f"chose {', '.join(sorted(guess))}")
