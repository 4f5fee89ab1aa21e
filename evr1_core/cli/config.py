"""``evr1 config``: what can be set."""

from __future__ import annotations

import argparse

from evr1_core.api.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("key", nargs="?", default="", metavar="KEY", help="only this setting, or those below it, such as `train`")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print docs/config.md")
    form.add_argument("--yaml", action="store_true", help="print a configuration file with all defaults")


def run(args: argparse.Namespace) -> int:
    """Prints the settings with type, default and meaning."""
    from evr1_core.config.build import leaves
    from evr1_core.config.reference import as_markdown, as_table, as_yaml
    from evr1_core.config.schema import RunConfig
    from evr1_core.registry.catalog import hint

    if args.markdown or args.yaml:
        print(as_markdown() if args.markdown else as_yaml(), end="")
        return 0
    table = as_table(args.key)
    if not table:
        near = hint(args.key, [".".join(path) for path in leaves(RunConfig)]).partition(" (")[0]
        raise ConfigError([f"no setting {args.key!r}{near}; `evr1 config` lists all"])
    print(table, end="")
    return 0
