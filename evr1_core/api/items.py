"""What an evaluation asks and gets: records of benchmarks, styles of prompts, scored answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from attrs import field, frozen, validators

from evr1_core.api.answers import Tube
from evr1_core.api.errors import DataError

Task = Literal["mc", "numeric", "regression", "tgrounding", "stgrounding", "open", "yesno", "count", "caption_mc"]
Gold = str | float | int | bool | tuple[float, float] | Tube | None
Form = Literal["direct", "reason", "tags"]
Subtitles = Literal["none", "text"]
Scores = Mapping[str, float]


@frozen(kw_only=True)
class EvalItem:
    """One question of a benchmark.

    ``uid`` is unique in the benchmark and the same in every run: ``bench/row`` or ``bench/id``. ``source_id`` is the published id,
    which may repeat. ``question`` holds neither options nor instructions; ``choices`` are texts without labels. ``gold``: a letter
    (mc, caption_mc), a number (numeric, regression), a whole number (count), True or False (yesno), (start, end) in seconds
    (tgrounding), a Tube in pixels of the source (stgrounding), text (open), or None where a program decides. ``video`` is relative
    to the benchmark's folder; ``clip`` are the seconds of it that may be shown, None for all; ``images`` follow the video.
    ``subtitle`` is a transcript, ``subtitle_offset`` the seconds to subtract from its times. ``size`` is (width, height) of the
    source. ``groups``: values on each axis of the report; an item counts once for every value. ``cluster``: key and position among
    items scored together. ``judge``: the rubric of :mod:`evr1_core.api.rubrics` where rules do not decide. ``origin``: file:line.

    Raises DataError, with origin and uid, for a record that no answer could be scored against.
    """

    uid: str
    bench: str
    task: Task = field(validator=validators.in_(get_args(Task)))
    question: str
    video: str
    gold: Gold = None
    source_id: str | None = None
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    clip: tuple[float, float] | None = None
    images: tuple[str, ...] = ()
    subtitle: str | None = None
    subtitle_offset: float = 0.0
    size: tuple[int, int] | None = None
    fps: float | None = None
    duration: float | None = None
    groups: Mapping[str, tuple[str, ...]] = field(factory=dict)
    cluster: tuple[str, int] | None = None
    judge: str | None = None
    meta: Mapping[str, Any] = field(factory=dict)
    origin: str = ""

    def __attrs_post_init__(self) -> None:
        if problem := self._problem():
            place = f"{self.origin}: " if self.origin else ""
            raise DataError([f"{place}record {self.uid!r}: {problem}"])

    @property
    def options(self) -> tuple[str, ...]:
        """The choices with their labels, one a line of the prompt: ``A. red``."""
        return tuple(f"{label}. {choice}" for label, choice in zip(self.labels, self.choices, strict=True))

    def _problem(self) -> str:
        if len(self.labels) != len(self.choices):
            return f"{len(self.choices)} choices and {len(self.labels)} labels"
        if self.clip is not None and not 0 <= self.clip[0] < self.clip[1] < math.inf:
            return f"no clip of a video lies between {self.clip[0]} and {self.clip[1]} s"
        wanted = _WANTED.get(self.task)
        return "" if wanted is None or wanted[1](self) else f"the gold answer {self.gold!r} is not {wanted[0]}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_span(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)) and value[0] < value[1]


_WANTED: Mapping[str, tuple[str, Any]] = {
    "mc": ("the label of one of its choices", lambda item: item.gold in item.labels),
    "caption_mc": ("the label of one of its choices", lambda item: item.gold in item.labels),
    "numeric": ("a number", lambda item: _is_number(item.gold)),
    "regression": ("a number", lambda item: _is_number(item.gold)),
    "count": ("a whole number", lambda item: type(item.gold) is int),
    "yesno": ("True or False", lambda item: type(item.gold) is bool),
    "tgrounding": ("a span (start, end) with start < end", lambda item: _is_span(item.gold)),
    "stgrounding": ("a Tube with a span", lambda item: isinstance(item.gold, Tube) and item.gold.span is not None),
    "open": ("text, or None", lambda item: item.gold is None or (isinstance(item.gold, str) and item.gold.strip())),
}


@frozen(kw_only=True)
class Skipped:
    """A record of the release that is no question of the benchmark, or cannot be asked: counted and shown with its reason."""

    origin: str
    reason: str


@frozen(kw_only=True)
class PromptStyle:
    """How questions are asked.

    ``form``: ``direct`` (the answer alone), ``reason`` (short reasoning, then "Therefore, the final answer is: X") or ``tags``
    (reasoning and answer between tags). ``subtitles``: whether transcripts are given.
    """

    form: Form = "direct"
    subtitles: Subtitles = "none"


@frozen(kw_only=True)
class ScoredRow:
    """One item with what its response is worth. ``answer`` None: none was found, or there is no response."""

    item: EvalItem
    answer: str | None
    scores: Scores
