"""Finds the samples whose prompts are too long, before a run and without their pixels; leaves them out where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evr1_core.api import DataError, Sample
from evr1_core.config.schema import RolloutConfig
from evr1_core.rollout.prompts import PromptEncoder


@frozen(kw_only=True)
class LongPrompt:
    """A sample whose prompt has more tokens than are allowed."""

    uid: str
    origin: str
    num_tokens: int

    def __str__(self) -> str:
        place = f"{self.origin}: " if self.origin else ""
        return f"{place}record {self.uid!r}: the prompt has {self.num_tokens} tokens"


def find_long(samples: Sequence[Sample], encoder: PromptEncoder) -> list[LongPrompt]:
    """The samples with a prompt longer than the encoder's limit, in order. Raises MediaError and ModelError."""
    lengths = [(sample, encoder.length(sample)) for sample in samples]
    return [
        LongPrompt(uid=sample.uid, origin=sample.origin, num_tokens=length)
        for sample, length in lengths
        if length > encoder.max_tokens
    ]


def without_long(samples: Sequence[Sample], long: Sequence[LongPrompt], config: RolloutConfig) -> list[Sample]:
    """The samples that fit. Raises DataError with all that do not, unless ``rollout.on_long_prompt`` is ``skip``."""
    if long and config.on_long_prompt == "fail":
        longest = max(each.num_tokens for each in long)
        advice = (
            f"{len(long)} prompts are longer than rollout.max_prompt_tokens = {config.max_prompt_tokens}, up to {longest}: "
            "raise it, lower frames or pixels in `frames`, or leave them out with rollout.on_long_prompt: skip"
        )
        raise DataError([*map(str, long), advice])
    left_out = {each.uid for each in long}
    return [sample for sample in samples if sample.uid not in left_out]


def long_metrics(samples: Sequence[Sample], long: Sequence[LongPrompt]) -> dict[str, float]:
    """Counts for the trackers: records left out, and their share."""
    return {"data/long_prompts": float(len(long)), "data/long_prompts_share": len(long) / max(len(samples), 1)}
