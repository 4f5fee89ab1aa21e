"""The command: answers every vector of some files, prints each difference, and exits with 1 where there is one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evr1_core.api import Evr1Error
from evr1_core.conformance.vectors import differences, read_vectors


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 no difference, 1 some, 2 a file or a plugin that cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m evr1_core.conformance",
        description="Compares vectors, one JSON object a line (id, op, inputs, expected, atol), with what training computes.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--algo", help="answer advantages and policy losses by this algorithm plugin: a name or FILE.py:Class")
    arguments = parser.parse_args(argv)
    try:
        if arguments.algo:
            _check_algorithm(arguments.algo)
        vectors = [vector for path in arguments.files for vector in read_vectors(path)]
    except Evr1Error as error:
        print(error, file=sys.stderr)
        return 2
    wrong = 0
    for vector in vectors:
        found = differences(vector, arguments.algo)
        wrong += bool(found)
        for each in found:
            print(f"{vector.place}: {vector.id}: {vector.op}: {each}")
    print(f"{len(vectors)} vectors, {wrong} differ")
    return 1 if wrong else 0


def _check_algorithm(name: str) -> None:
    from evr1_core.registry.loading import build_plugin

    build_plugin("algorithms", name, {}, place="--algo")


if __name__ == "__main__":
    sys.exit(main())
