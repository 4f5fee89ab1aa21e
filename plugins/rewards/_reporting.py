"""Evaluates calls into a program and writes their values; as a script, it runs inside the sandbox and knows no expected value."""

import json
import os
import sys
from typing import Any


def plain(value: Any, depth: int) -> list[Any]:
    """A value as JSON that keeps its type: [type, content]. One of another type, or nested too deeply, is its type's name."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return [kind.__name__, value]
    if kind in (int, float):
        return [kind.__name__, repr(value)]
    if depth and kind in (list, tuple):
        return [kind.__name__, [plain(one, depth - 1) for one in value]]
    if depth and kind in (set, frozenset):
        return ["set", sorted((plain(one, depth - 1) for one in value), key=repr)]
    if depth and kind is dict:
        return ["dict", sorted(([plain(one, depth - 1), plain(value[one], depth - 1)] for one in value), key=repr)]
    return ["other", kind.__name__]


def main() -> None:
    """Reads {"source", "calls", "depth"} from standard input; writes one value a line. What the program prints goes elsewhere."""
    task = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(task["source"], "program", "exec"), names)  # noqa: S102 - inside the sandbox
    for call in task["calls"]:
        try:
            told = plain(eval(call, names), task["depth"])  # noqa: S307 - inside the sandbox
        except Exception as error:  # noqa: BLE001 - whatever the program raises
            told = ["raised", type(error).__name__]
        os.write(out, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
