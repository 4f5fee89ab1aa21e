"""``evr1 demo``: films, a tiny model, a warm start, reinforcement learning, evaluation."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--output", type=Path, help="folder for all that the demo makes (default: runs/demo-<date and time>)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the films, the weights and the training")
    parser.add_argument("--train-films", type=int, default=600, help="films to learn from (default: 600)")
    parser.add_argument("--val-films", type=int, default=80, help="films to be asked about, four questions each (default: 80)")


def run(args: argparse.Namespace) -> int:
    """Runs it and prints the table of what was learned."""
    from evr1_core.demo.run import demo, table

    folder = args.output or Path(f"runs/demo-{datetime.now():%Y%m%d-%H%M%S}")
    print(table(demo(folder, seed=args.seed, train_films=args.train_films, val_films=args.val_films)))
    return 0
