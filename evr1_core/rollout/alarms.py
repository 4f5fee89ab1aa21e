"""Notices during a run that nothing can be learned: groups without spread, unreadable answers, cut-off responses,
a sampler that is not the policy."""

from __future__ import annotations

from attrs import define, field

from evr1_core.config.schema import AlarmConfig

MAX_TRUNCATED = 0.5


@define
class Alarms:
    """Counts, over steps in a row, what makes learning impossible; each ``update`` is one step.

    One alarm a condition: all groups have zero variance, every answer is unparsed, more than half of the responses are cut off, the
    engine's log-probs are on average more than ``config.mismatch`` away from the trainer's. It sounds when the condition held for
    ``config.patience`` steps in a row, and again after as many more. ``patience`` 0: never.
    """

    config: AlarmConfig
    _streaks: dict[str, int] = field(factory=dict, init=False)

    def update(self, *, spread_groups: int, groups: int, parsed: float, truncated: float, mismatch: float = 0.0) -> str | None:
        """The message of the alarms that sound after this step, or None.

        ``spread_groups`` of ``groups`` have rewards that differ; ``parsed`` and ``truncated``: shares of the step's responses in
        [0, 1]; ``mismatch``: mean distance of log-probs, natural logarithm. A step without groups says nothing about them.
        """
        if not self.config.patience:
            return None
        held = {
            f"all {groups} groups had equal rewards, so there was no gradient": groups > 0 and spread_groups == 0,
            "no answer could be read": groups > 0 and parsed <= 0.0,
            f"more than {MAX_TRUNCATED:.0%} of the responses were cut off at the token limit": truncated > MAX_TRUNCATED,
            f"log-probs of engine and trainer were more than {self.config.mismatch:g} apart": 0 < self.config.mismatch < mismatch,
        }
        sounding = [what for kind, (what, holds) in enumerate(held.items()) if self._sounds(str(kind), holds)]
        if not sounding:
            return None
        return f"alarm: in each of the last {self.config.patience} steps {'; '.join(sounding)} (see alarms.patience, alarms.action)"

    def _sounds(self, kind: str, holds: bool) -> bool:
        self._streaks[kind] = self._streaks.get(kind, 0) + 1 if holds else 0
        return holds and self._streaks[kind] % self.config.patience == 0
