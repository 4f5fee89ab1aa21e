"""The values of a record's keys, checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from evr1_core.config.schema import KeysConfig


class BadRowError(Exception):
    """A reason why one row cannot be used."""


def read_uid(row: Mapping[str, Any], keys: KeysConfig, default: str) -> str:
    """The id under the configured key; without one, ``default``."""
    if not keys.uid:
        return default
    value = row.get(keys.uid)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadRowError(f"{keys.uid}: must be text or a whole number, since data.keys.uid names it; is {shown(value)}")
    return _encodable(str(value), keys.uid)


def read_text(row: Mapping[str, Any], key: str) -> str:
    """Text that is not blank."""
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRowError(f"{key}: must be text that is not blank; is {shown(value)}")
    return _encodable(value, key)


def read_optional_text(row: Mapping[str, Any], key: str) -> str:
    """Text, or nothing."""
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRowError(f"{key}: must be text; is {shown(value)}")
    return _encodable(value, key)


def read_answer(row: Mapping[str, Any], keys: KeysConfig) -> str:
    """The gold: text as it stands, anything else as JSON."""
    value = row.get(keys.answer)
    if value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip()):
        raise BadRowError(f"{keys.answer}: must be given; is {shown(value)}")
    return _encodable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), keys.answer)


def read_options(row: Mapping[str, Any], keys: KeysConfig) -> tuple[str, ...]:
    """The choices; none when the key is missing or empty."""
    value = row.get(keys.options)
    if value is None or value == "":
        return ()
    if not isinstance(value, list):
        raise BadRowError(f"{keys.options}: must be a list of texts; is {shown(value)}")
    for each in value:
        if isinstance(each, bool) or not isinstance(each, str | int | float) or not str(each).strip():
            raise BadRowError(f"{keys.options}: must hold texts that are not blank; holds {shown(each)}")
    return tuple(_encodable(str(each), keys.options) for each in value)


def read_offline(row: Mapping[str, Any], keys: KeysConfig) -> str | None:
    """The stored trajectory; None when it is blank or the record says it may not be used."""
    text, flag = read_optional_text(row, keys.offline), row.get(keys.has_offline)
    if flag is not None and not isinstance(flag, bool):
        raise BadRowError(f"{keys.has_offline}: must be true or false; is {shown(flag)}")
    if flag and not text.strip():
        raise BadRowError(f"{keys.has_offline}: is true, and {keys.offline} is blank")
    return None if flag is False or not text.strip() else text


def read_offline_logprobs(row: Mapping[str, Any], keys: KeysConfig) -> tuple[float, ...]:
    """The log-probabilities of the stored trajectory's tokens; none when the key is missing or empty."""
    value = row.get(keys.offline_logprobs)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadRowError(f"{keys.offline_logprobs}: must be a list of numbers; is {shown(value)}")
    for each in value:
        if isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each) or each > 0:
            raise BadRowError(f"{keys.offline_logprobs}: must hold logarithms of probabilities, 0 or less; holds {shown(each)}")
    return tuple(map(float, value))


def shown(value: Any) -> str:
    """A value in a message."""
    text = "missing" if value is None else json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _encodable(text: str, key: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRowError(f"{key}: holds half a surrogate pair at character {error.start}, which no tokenizer takes") from error
    return text
