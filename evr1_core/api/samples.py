"""What is trained on and asked: media, records and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

Kind = Literal["image", "video"]


@frozen(kw_only=True)
class Media:
    """One image or video file, or a span of a video.

    ``path`` is relative to the media root, or absolute. ``span`` is (start, end) in seconds from the first shown frame; None takes
    the whole file.
    """

    kind: Kind
    path: str
    span: tuple[float, float] | None = None


@frozen(kw_only=True)
class Sample:
    """One training or validation record.

    ``uid`` is stable: joins and resuming key on it. ``task`` is the problem type in canonical form (lower case, blanks for ``_``
    and ``-``). ``answer`` is the gold as text; a gold that is no string in the file is kept as JSON text. ``problem`` may hold
    ``<image>`` and ``<video>`` placeholders, which take ``media`` in order. ``offline`` is a stored trajectory, and
    ``offline_logprobs`` what whoever sampled it gave each of its tokens, end token included. ``origin`` is ``file:line``.
    """

    uid: str
    task: str
    problem: str
    answer: str
    options: tuple[str, ...] = ()
    media: tuple[Media, ...] = ()
    source: str = ""
    offline: str | None = None
    offline_logprobs: tuple[float, ...] = ()
    origin: str = ""
    extra: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Prompt:
    """What the model is asked: text and media in model order, as one user turn, with an optional system text before it."""

    parts: tuple[str | Media, ...]
    system: str = ""

    @property
    def media(self) -> tuple[Media, ...]:
        """The media of the prompt, in order of appearance."""
        return tuple(part for part in self.parts if isinstance(part, Media))
