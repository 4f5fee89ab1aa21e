"""The contract of rewards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evr1_core.api import Reward, RewardInput, RewardResult, Sample
from evr1_core.testing.hostile import GARBLED, HUGE_ANSWERS, SECONDS, timed
from evr1_core.testing.samples import SAMPLES


def check_reward(reward: Reward, samples: Sequence[Sample] | None = None) -> None:
    """``samples``: records of the plugin's problem types with good gold answers; None takes the made-up ones of the built-in types,
    and for a type of your own there is none: give some.

    Demands: each gold answer scores 1; no text of any form or length raises, takes long or leaves [0, 1]; no answer scores 0 and is
    not ``parsed``; the parts are those declared; a batch scores as its members do, and the same each time.
    """
    _check_declaration(reward)
    if samples is None:
        samples = [SAMPLES[task] for task in sorted(reward.tasks) if task in SAMPLES]
        unknown = sorted(reward.tasks - SAMPLES.keys())
        assert not unknown, f"there is no made-up record for {', '.join(unknown)}: call check_reward(reward, samples=[...])"
    for sample in samples:
        gold = _item(sample, sample.answer)
        result = _checked(reward, gold)
        assert result.parsed, f"{sample.uid}: its own gold answer {sample.answer!r} is not parsed"
        assert result.accuracy is not None, f"{sample.uid}: its own gold answer is not judged"
        assert math.isclose(result.accuracy, 1.0, abs_tol=1e-9), f"{sample.uid}: its own gold scores {result.accuracy}, not 1"
        items = [gold, *_hostile(sample)]
        results = [_checked(reward, item) for item in items]
        assert reward.score_batch(items) == results, f"{sample.uid}: score_batch differs from score"


def _check_declaration(reward: Reward) -> None:
    assert reward.tasks, "tasks is empty"
    for task in reward.tasks:
        folded = " ".join(task.lower().replace("_", " ").replace("-", " ").split())
        assert task == folded, f"tasks holds {task!r}; its canonical form is {folded!r}"


def _item(sample: Sample, answer: str | None, *, truncated: bool = False) -> RewardInput:
    text = "<think>" if answer is None else f"<think>Look.</think><answer>{answer}</answer>"
    return RewardInput(sample=sample, response=text, num_tokens=len(text), truncated=truncated, answer=answer)


def _hostile(sample: Sample) -> Iterator[RewardInput]:
    yield _item(sample, None, truncated=True)
    for answer in (*GARBLED, *HUGE_ANSWERS):
        yield _item(sample, answer)


def _checked(reward: Reward, item: RewardInput) -> RewardResult:
    shown = "no answer" if item.answer is None else repr(item.answer[:40])
    result, seconds = timed(lambda: reward.score(item))
    where = f"{item.sample.uid}, {shown}"
    assert isinstance(result, RewardResult), f"{where}: score gave a {type(result).__name__}, not a RewardResult"
    assert seconds <= SECONDS, f"{where}: took {seconds:.1f} s"
    assert result.accuracy is None or 0.0 <= result.accuracy <= 1.0, f"{where}: accuracy {result.accuracy} is not in [0, 1]"
    assert set(result.parts) == set(reward.parts), f"{where}: parts {sorted(result.parts)}, declared {sorted(reward.parts)}"
    for name, value in result.parts.items():
        assert math.isfinite(value), f"{where}: part {name} is {value}"
    if item.answer is None or not item.answer.strip():
        assert result.accuracy == 0.0, f"{where}: scores {result.accuracy}, not 0"
        assert not result.parsed, f"{where}: counts as parsed"
    return result
