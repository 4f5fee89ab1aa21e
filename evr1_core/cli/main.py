"""The command line: ``evr1 COMMAND ...``. Only the module of the command that was asked for is imported."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from evr1_core import __version__
from evr1_core.api.errors import Evr1Error

COMMANDS = (  # name and help; the module is evr1_core.cli.<name>
    ("run", "train a policy"),
    ("eval", "run benchmarks on a model"),
    ("score", "score stored responses with the reward plugins"),
    ("filter", "find the records that a model can learn from"),
    ("data", "check data files"),
    ("cache", "decode videos into the frame cache, and look after it"),
    ("plugins", "list plugins, check them, show one"),
    ("new", "start a package with a plugin of your own"),
    ("demo", "the whole of it on small made-up clips"),
    ("config", "list settings, write a configuration to start from"),
    ("doctor", "find what would keep a run from working here"),
)
DEBUG = "EVR1_DEBUG"  # any value: errors keep their traceback
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class Command(Protocol):
    """What a module of this package offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: that of the command; 2 for bad input, with a message and no traceback; 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except Evr1Error as error:
        if os.environ.get(DEBUG):
            raise
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(words: Sequence[str]) -> int:
    name = next((word for word in words if not word.startswith("-")), None)
    known = [command for command, _ in COMMANDS]
    command = _load(name) if name in known else None
    parser = argparse.ArgumentParser(prog="evr1", description="Reinforcement learning of video-language models.")
    parser.add_argument("--version", action="version", version=f"evr1 {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for each, help_text in COMMANDS:
        subparser = subparsers.add_parser(each, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.")
        if command is not None and each == name:
            command.add_arguments(subparser)
    if name is not None and name not in known:
        from evr1_core.registry.catalog import hint

        parser.error(f"no command {name!r}{hint(name, known).replace('installed', 'known')}")
    args = parser.parse_args(words)
    assert command is not None  # argparse insists on one
    return command.run(args)


def _load(name: str | None) -> Command:
    return cast(Command, importlib.import_module(f"evr1_core.cli.{name}"))


if __name__ == "__main__":
    sys.exit(main())
