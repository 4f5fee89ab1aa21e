"""``evr1 new``: a package with one plugin, its entry point and its test, ready to install."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from evr1_core import __version__
from evr1_core.api.errors import Evr1Error
from evr1_core.cli._benchmark_starter import BENCHMARK, BENCHMARK_TEST
from evr1_core.cli._model_starter import MODEL, MODEL_TEST

KINDS = ("reward", "benchmark", "algorithm", "model")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kind, name and folder."""
    parser.add_argument("kind", choices=KINDS, help="what the plugin is")
    parser.add_argument("name", help="its name: lower-case letters, digits and _")
    parser.add_argument("--dir", default=".", help="folder in which the package's folder is made (default: here)")


def run(args: argparse.Namespace) -> int:
    """Writes the package and says what comes next. Raises Evr1Error, with nothing written, for a bad name or an existing folder."""
    folder = write_package(args.kind, args.name, Path(args.dir))
    print(
        f"{folder}: written. Next:\n"
        f"  pip install --no-build-isolation --no-deps -e {folder}\n"
        f"  python -m pytest {folder}\n"
        f"  evr1 plugins {args.kind}s/{args.name}"
    )
    return 0


def write_package(kind: str, name: str, parent: Path) -> Path:
    """The folder of a new distribution ``evr1-KIND-NAME`` in ``parent``."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise Evr1Error(f"{name!r} is no plugin name: use lower-case letters, digits and _, a letter first")
    if not parent.is_dir():
        raise Evr1Error(f"{parent}: there is no such folder")
    dist = f"evr1-{kind}-{name.replace('_', '-')}"
    folder = parent / dist
    if folder.exists():
        raise Evr1Error(f"{folder} exists already; choose another name or folder")
    module = dist.replace("-", "_")
    words = {"kind": kind, "name": name, "dist": dist, "module": module, "cls": "".join(map(str.capitalize, name.split("_")))}
    major, minor = __version__.split(".")[:2]
    words |= {"this": f"{major}.{minor}", "next": f"{major}.{int(minor) + 1}", "title": name.replace("_", " ")}
    files = {"pyproject.toml": PYPROJECT, f"{module}.py": MODULES[kind], f"tests/test_{module}.py": TESTS[kind]}
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub(r"%(\w+)%", lambda match: words[match[1]], text), "utf-8")
    return folder


PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "%dist%"
version = "0.1"
description = "The %kind% %name% for evr1"
requires-python = ">=3.11"
dependencies = ["evr1>=%this%,<%next%"]

[project.entry-points."evr1.%kind%s"]
%name% = "%module%:%cls%"

[tool.setuptools]
py-modules = ["%module%"]
"""

REWARD = '''\
"""The reward %name%."""

from __future__ import annotations

from attrs import define, field

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult


@define(kw_only=True)
class %cls%(Reward):
    """1 when the answer is the gold answer, white space and case aside, else 0."""

    api = 1
    tasks = frozenset({"%title%"})  # the problem types it serves: lower case, blanks for _ and -

    ignore_case: bool = field(default=True, metadata={"help": "capital letters count as small ones"})

    def score(self, item: RewardInput) -> RewardResult:
        gold = self._folded(item.sample.answer)
        if not gold:
            raise BadGoldError(item.sample, "a text")
        guess = self._folded(item.answer or "")
        return RewardResult(accuracy=float(guess == gold), parsed=bool(guess))

    def _folded(self, text: str) -> str:
        words = " ".join(text.split())
        return words.casefold() if self.ignore_case else words
'''

REWARD_TEST = """\
from evr1_core.api import RewardInput
from evr1_core.testing import check_reward, sample

from %module% import %cls%

GOLD = sample("%title%", "a red square")


def test_contract() -> None:
    check_reward(%cls%(), samples=[GOLD])


def test_case_is_an_option() -> None:
    item = RewardInput(sample=GOLD, response="<answer>A Red Square</answer>", answer="A Red Square")
    assert %cls%().score(item).accuracy == 1.0
    assert %cls%(ignore_case=False).score(item).accuracy == 0.0
"""

ALGORITHM = '''\
"""The algorithm %name%."""

from __future__ import annotations

from attrs import define, field, validators

from evr1_core.api import Advantages, Algorithm, LossBatch, LossResult, ScoreBatch
from evr1_core.api.tensors import by_group, clamp20, ppo_losses, scores_of, spread_over_tokens


@define(kw_only=True)
class %cls%(Algorithm):
    """Reward minus the mean of the group, clipped surrogate, averaged over tokens."""

    api = 1
    min_group = 2

    clip: float = field(default=0.2, validator=validators.gt(0), metadata={"help": "the ratio stays within 1 - clip and 1 + clip"})

    def advantages(self, batch: ScoreBatch) -> Advantages:
        credits = by_group(scores_of(batch), batch.group_ids, batch.judged, lambda rewards: rewards - rewards.mean())
        return Advantages(values=spread_over_tokens(credits, batch.mask))

    def policy_loss(self, batch: LossBatch) -> LossResult:
        log_ratio = clamp20(batch.logprobs - batch.old_logprobs)
        losses, _, _ = ppo_losses(log_ratio, batch.advantages, low=self.clip, high=self.clip, dual=None)
        if batch.weights is not None:
            losses = losses * batch.weights
        return LossResult(loss=self.mean(losses, batch))
'''

ALGORITHM_TEST = """\
from evr1_core.testing import check_algorithm

from %module% import %cls%


def test_contract() -> None:
    check_algorithm(%cls%())
"""

MODULES = {"reward": REWARD, "benchmark": BENCHMARK, "algorithm": ALGORITHM, "model": MODEL}
TESTS = {"reward": REWARD_TEST, "benchmark": BENCHMARK_TEST, "algorithm": ALGORITHM_TEST, "model": MODEL_TEST}
