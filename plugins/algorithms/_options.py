"""Options that several algorithms have, with their checks."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, validators

from evr1_core.api.tensors import AGGREGATIONS, LEVELS, Aggregation, Level

OffMode = Literal["on_policy", "luffy", "is"]
OFF_MODES: tuple[OffMode, ...] = ("on_policy", "luffy", "is")
BaselineRows = Literal["all", "online"]
BASELINE_ROWS: tuple[BaselineRows, ...] = ("all", "online")


def option(default: Any, help_text: str, *checks: Any) -> Any:
    """An option with its help; a check of one whose default is None lets None pass."""
    every = [validators.optional(check) if default is None else check for check in checks]
    return field(default=default, validator=every or None, metadata={"help": help_text})


def clip_low(default: float | None = 0.2, help_text: str = "lower clip of the ratio: 1 - clip_low") -> Any:
    return option(default, help_text, validators.ge(0), validators.le(1))


def clip_high(default: float = 0.28, help_text: str = "upper clip of the ratio: 1 + clip_high") -> Any:
    return option(default, help_text, validators.ge(0))


def aggregation(default: Aggregation = "token-mean") -> Any:
    return option(
        default,
        "token-mean: all tokens alike; seq-mean-...: all responses alike, by their tokens' mean or sum, or the sum over the limit",
        validators.in_(AGGREGATIONS),
    )


def baseline_rows() -> Any:
    return option(
        "all", "statistics of a group: of all its responses, or without stored trajectories", validators.in_(BASELINE_ROWS)
    )


def off_mode(default: OffMode = "on_policy") -> Any:
    return option(
        default,
        "loss of stored trajectories: on_policy: as of samples; luffy: -A p / (p + off_gamma); is: by the ratio to recorded "
        "log-probabilities",
        validators.in_(OFF_MODES),
    )


def level() -> Any:
    default: Level = "seq"
    return option(
        default, "whitening over the batch counts each response once (seq), or each token (token)", validators.in_(LEVELS)
    )


def discount(help_text: str) -> Any:
    return option(1.0, help_text, validators.ge(0), validators.le(1))
