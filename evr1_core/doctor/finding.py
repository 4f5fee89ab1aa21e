"""One thing that was looked at."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

Level = Literal["ok", "note", "stop"]


@frozen
class Finding:
    """``name`` is what was looked at, ``value`` what was found.

    ``level``: ``ok``; ``note``, when a run works without it, or not as well; ``stop``, when it would end a run, or keep one from
    starting. ``advice`` says what to do about it; only something that is ``ok`` may have none.
    """

    section: str
    name: str
    value: str
    level: Level = "ok"
    advice: str = field(default="")

    @advice.validator
    def _check_advice(self, attribute: object, value: str) -> None:
        assert value or self.level == "ok", self.name
