"""Alarms: what stops a run that cannot learn."""

from __future__ import annotations

from evr1_core.config.schema import AlarmConfig
from evr1_core.rollout.alarms import Alarms

FINE = {"spread_groups": 2, "groups": 4, "parsed": 0.9, "truncated": 0.1}


def sound(patience: int, *steps: dict[str, float]) -> list[str | None]:
    alarms = Alarms(AlarmConfig(patience=patience))
    return [alarms.update(**{**FINE, **step}) for step in steps]  # type: ignore[arg-type]


def test_each_condition_alone() -> None:
    for step, words in (
        ({"spread_groups": 0}, "equal rewards"),
        ({"parsed": 0.0}, "no answer"),
        ({"truncated": 0.51}, "cut off"),
        ({"mismatch": 0.11}, "more than 0.1 apart"),
    ):
        first, second = sound(2, step, step)
        assert first is None
        assert second is not None
        assert words in second
        assert second.count(";") == 0


def test_only_steps_in_a_row_count() -> None:
    assert sound(2, {"parsed": 0.0}, {}, {"parsed": 0.0}) == [None, None, None]
    assert sound(2, {"parsed": 0.0}, {"truncated": 1.0}) == [None, None]


def test_sounds_again_after_as_many_steps() -> None:
    heard = sound(2, *[{"parsed": 0.0}] * 4)
    assert [bool(message) for message in heard] == [False, True, False, True]


def test_several_at_once_are_one_message() -> None:
    [message] = sound(1, {"spread_groups": 0, "parsed": 0.0, "truncated": 1.0})
    assert message is not None
    assert message.count(";") == 2


def test_limits() -> None:
    assert sound(1, {"truncated": 0.5}, {"parsed": 0.01}, {"spread_groups": 1}, {"mismatch": 0.1}) == [None] * 4
    assert Alarms(AlarmConfig(patience=1, mismatch=0.0)).update(**FINE, mismatch=9.0) is None  # type: ignore[arg-type]
    assert sound(1, {"groups": 0, "spread_groups": 0, "parsed": 0.0}) == [None]
    assert sound(0, *[{"parsed": 0.0}] * 3) == [None] * 3
