"""Vectors from files, their answers, and how these differ from what was expected."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from evr1_core.api import DataError, Evr1Error
from evr1_core.conformance.functions import FUNCTIONS
from evr1_core.conformance.inputs import Inputs, plain
from evr1_core.conformance.plugins import advantages, microbatch, policy_loss

BY_PLUGINS = {"loss.policy": policy_loss, "loss.microbatch": microbatch}
AT_MOST = "_at_most"  # an expectation by this ending bounds the answer of the name before it


@frozen(kw_only=True)
class Vector:
    """One row of a file. ``place``: file and line."""

    place: str
    id: str
    op: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    atol: float = 1e-6
    note: str = field(default="")


def read_vectors(path: Path) -> list[Vector]:
    """All rows of a JSONL file. Raises DataError that lists, with file and line, every row that cannot be used."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError([f"{path}: cannot be read: {error}"]) from error
    vectors, problems = [], []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                vectors.append(_vector(json.loads(line), f"{path}:{number}"))
            except (ValueError, TypeError) as error:
                problems.append(f"{path}:{number}: {error}")
    if problems or not vectors:
        raise DataError(problems or [f"{path}: holds no rows; one JSON object a line is wanted, with id, op, inputs, expected"])
    return vectors


def _vector(raw: Any, place: str) -> Vector:
    if not isinstance(raw, dict):
        raise TypeError("is no JSON object")
    missing = [key for key in ("id", "op", "inputs", "expected") if key not in raw]
    if missing:
        raise ValueError(f"lacks {', '.join(missing)}")
    if not isinstance(raw["inputs"], dict) or not isinstance(raw["expected"], dict):
        raise TypeError("`inputs` and `expected` must be objects")
    known = {key: raw[key] for key in ("inputs", "expected", "atol", "note") if key in raw}
    return Vector(place=place, id=str(raw["id"]), op=str(raw["op"]), **known)


def answer(vector: Vector, algorithm: str | None = None) -> dict[str, Any]:
    """What the functions behind the operation give. Raises Evr1Error for an operation that is not known, and for bad inputs."""
    inputs = Inputs(vector.inputs, algorithm)
    if vector.op.startswith("adv."):
        result = advantages(vector.op, inputs)
    elif vector.op in BY_PLUGINS:
        result = BY_PLUGINS[vector.op](vector.op, inputs)
    elif vector.op in FUNCTIONS:
        result = FUNCTIONS[vector.op](inputs)
    else:
        raise Evr1Error(f"operation {vector.op!r} is not known: adv.NAME, {', '.join([*BY_PLUGINS, *FUNCTIONS])}")
    made: dict[str, Any] = plain(result)
    return made


def differences(vector: Vector, algorithm: str | None = None) -> list[str]:
    """Each expected value that the answer misses, with its key; or the error in its place."""
    try:
        made = answer(vector, algorithm)
    except Evr1Error as error:
        return [str(error)]
    return list(_different(vector.expected, made, "", vector.atol))


def _different(expected: Any, made: Any, key: str, atol: float) -> Iterator[str]:
    if isinstance(expected, Mapping):
        yield from _different_keys(expected, made, key, atol)
    elif isinstance(expected, list):
        if not isinstance(made, list) or len(made) != len(expected):
            yield f"{key}: {_shown(expected)} expected, is {_shown(made)}"
        else:
            for place, (one, other) in enumerate(zip(expected, made, strict=True)):
                yield from _different(one, other, f"{key}[{place}]", atol)
    elif _is_number(expected) and _is_number(made):
        if not math.isclose(expected, made, rel_tol=0.0, abs_tol=_tolerance(expected, atol)):
            yield f"{key}: {expected} expected, is {made} ({made - expected:+.3g})"
    elif expected != made:
        yield f"{key}: {_shown(expected)} expected, is {_shown(made)}"


def _different_keys(expected: Mapping[str, Any], made: Any, key: str, atol: float) -> Iterator[str]:
    if not isinstance(made, Mapping):
        yield f"{key}: {_shown(expected)} expected, is {_shown(made)}"
        return
    for name, value in expected.items():
        below = f"{key}.{name}".lstrip(".")
        bounded = name.removesuffix(AT_MOST)
        if bounded != name and bounded in made:
            if made[bounded] > value + atol:
                yield f"{below}: at most {value} expected, is {made[bounded]}"
        elif name not in made:
            yield f"{below}: {_shown(value)} expected, there is no such value (there are {', '.join(map(str, made))})"
        else:
            yield from _different(value, made[name], below, atol)


def _tolerance(expected: float, atol: float) -> float:
    """Numbers beyond 10^6 cannot be held to 10^-6: there, rounding of the last of 15 digits is let pass."""
    return max(atol, 1e-15 * abs(expected))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)  # truth values count as 0 and 1: masks come as either


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 100 else f"{text[:97]}..."
