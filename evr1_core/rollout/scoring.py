"""Scores responses: takes the answer out, asks the reward that serves the task, adds format and length, and weighs the parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from evr1_core.api.answers import extract
from evr1_core.api.clips import BoxSpace
from evr1_core.api.errors import BadGoldError, ClashError, ConfigError, DataError, NotJudgedError, PluginError
from evr1_core.api.rewards import Reward, RewardInput, RewardResult
from evr1_core.api.samples import Sample
from evr1_core.config.schema import RewardChoice, RewardConfig
from evr1_core.rollout.form import in_form

SHARED_PARTS = ("accuracy", "format", "overlong")


@frozen(kw_only=True)
class Response:
    """A response to score. ``num_tokens`` counts the end token; ``truncated``: the limit cut it off; ``boxes``: the space that
    the model writes boxes in.
    """

    sample: Sample
    text: str
    num_tokens: int = 0
    truncated: bool = False
    boxes: BoxSpace | None = None


@frozen(kw_only=True)
class Scored:
    """``total``: the weighted reward. ``components``, unweighted: ``accuracy``, the parts that the reward declares, ``format``, and
    ``overlong`` (in [-1, 0], when it is on). ``judged`` False: a judge gave no verdict; ``accuracy`` is None, its component and the
    declared parts are missing, and ``total`` is a placeholder: the response must leave the statistics. ``note`` says why in a few
    words; ``reward`` names the plugin.
    """

    total: float
    components: Mapping[str, float]
    accuracy: float | None
    parsed: bool
    judged: bool = True
    note: str = ""
    reward: str = ""


def overlong_tokens(config: RewardConfig, max_tokens: int) -> int:
    """The setting ``reward.overlong_buffer`` in tokens: below 1 it is a share of the limit."""
    buffer = config.overlong_buffer
    return round(buffer * max_tokens) if buffer < 1 else round(buffer)


def overlong(num_tokens: int, max_tokens: int, buffer: int) -> float:
    """Length penalty in [-1, 0] (arXiv:2503.14476): 0 up to ``max_tokens - buffer``, -1 from ``max_tokens`` on, linear between."""
    if buffer <= 0:
        return 0.0
    return min(0.0, max(-1.0, (max_tokens - buffer - num_tokens) / buffer))


class Scorer:
    """Routes responses to the active rewards by problem type.

    ``rewards`` and ``choices`` (weights) by name; ``distributions`` names, for messages, who ships a reward. ``allow_bad_gold``:
    responses to a record whose gold is broken are not judged, in place of an error. Raises ClashError when two rewards claim a task
    and ConfigError when the fallback is not among them.
    """

    def __init__(
        self,
        rewards: Mapping[str, Reward],
        choices: Mapping[str, RewardChoice],
        config: RewardConfig,
        *,
        opens_thinking: bool = False,
        max_tokens: int,
        distributions: Mapping[str, str] | None = None,
        allow_bad_gold: bool = False,
    ) -> None:
        self.rewards = dict(rewards)
        self.config = config
        self.opens_thinking = opens_thinking
        self.max_tokens = max_tokens
        self.allow_bad_gold = allow_bad_gold
        self._weights = {name: choices[name].weight if name in choices else 1.0 for name in rewards}
        self._distributions = dict(distributions or {})
        self._by_task = self._routes()
        if config.fallback and config.fallback not in rewards:
            raise ConfigError(
                [f"reward.fallback: {config.fallback!r} is not among the chosen rewards ({', '.join(rewards) or 'none'})"]
            )

    @property
    def tasks(self) -> frozenset[str]:
        """The problem types that the active rewards serve, in canonical form."""
        return frozenset(self._by_task)

    @property
    def parts(self) -> tuple[str, ...]:
        """Every component that a response may have."""
        shared = SHARED_PARTS if self.config.overlong_buffer else SHARED_PARTS[:2]
        return tuple(dict.fromkeys((*shared, *(part for reward in self.rewards.values() for part in reward.parts))))

    def _routes(self) -> dict[str, str]:
        routes: dict[str, str] = {}
        for name, reward in self.rewards.items():
            for task in sorted(reward.tasks):
                if task in routes:
                    raise ClashError(
                        f"problem type {task!r} is claimed by two chosen rewards: {self._named(routes[task])} and "
                        f"{self._named(name)}; choose one of them (--rewards)"
                    )
                routes[task] = name
        return routes

    def _named(self, name: str) -> str:
        distribution = self._distributions.get(name) or _distribution(self.rewards[name])
        return f"{name!r} of {distribution}"

    def route(self, sample: Sample) -> str:
        """Name of the reward that serves a record. Raises DataError when none does."""
        problem = self.unserved(sample)
        if problem:
            raise DataError([problem])
        return self._by_task.get(sample.task, self.config.fallback)

    def unserved(self, sample: Sample) -> str | None:
        """Why no reward serves a record, with its place; None when one does."""
        if sample.task in self._by_task or self.config.fallback:
            return None
        place = f"{sample.origin}: " if sample.origin else ""
        return (
            f"{place}record {sample.uid!r}: no chosen reward serves problem type {sample.task!r} "
            f"(served: {', '.join(sorted(self._by_task))}); choose one that does (--rewards) or set reward.fallback"
        )

    def check_tasks(self, samples: Iterable[Sample]) -> None:
        """Raises DataError that names the first record of every problem type that nobody serves."""
        first: dict[str, Sample] = {}
        for sample in samples:
            first.setdefault(sample.task, sample)
        problems = [problem for sample in first.values() if (problem := self.unserved(sample))]
        if problems:
            raise DataError(problems)

    def answer(self, text: str) -> str | None:
        """The answer of a response, strict."""
        return extract(text, opens_thinking=self.opens_thinking, reasoning_tag=self.config.format.reasoning_tag)

    def wrapped(self, answer: str) -> str:
        """A well-formed response that gives ``answer``."""
        tag = self.config.format.reasoning_tag
        reasoning = f"</{tag}>" if self.opens_thinking else f"<{tag}></{tag}>"
        return f"{reasoning}<answer>{answer}</answer>"

    def score(self, items: Sequence[Response]) -> list[Scored]:
        """One result for every response, in order. Raises BadGoldError for a record whose gold cannot be read and PluginError
        when a reward breaks its contract.
        """
        names = [self.route(item.sample) for item in items]
        inputs = [self._input(item) for item in items]
        scored: list[Scored | None] = [None] * len(items)
        for name in dict.fromkeys(names):
            rows = [row for row, other in enumerate(names) if other == name]
            for row, result in zip(rows, self._ask(name, [inputs[row] for row in rows]), strict=True):
                scored[row] = self._compose(name, inputs[row], result)
        return [one for one in scored if one is not None]

    def _input(self, item: Response) -> RewardInput:
        return RewardInput(
            sample=item.sample,
            response=item.text,
            num_tokens=item.num_tokens,
            truncated=item.truncated,
            answer=self.answer(item.text),
            boxes=item.boxes,
        )

    def _ask(self, name: str, inputs: Sequence[RewardInput]) -> list[RewardResult]:
        reward = self.rewards[name]
        try:
            results = reward.score_batch(inputs)
        except (NotJudgedError, BadGoldError) as error:
            if isinstance(error, BadGoldError) and not self.allow_bad_gold:
                raise
            results = [self._score_one(reward, item) for item in inputs]  # so that the others keep their verdicts
        if len(results) != len(inputs):
            raise PluginError(f"reward {self._named(name)} returned {len(results)} results for {len(inputs)} responses")
        for item, result in zip(inputs, results, strict=True):
            self._check(name, item.sample, result)
        return results

    def _score_one(self, reward: Reward, item: RewardInput) -> RewardResult:
        try:
            return reward.score(item)
        except NotJudgedError as error:
            return RewardResult(accuracy=None, parsed=False, note=str(error))
        except BadGoldError as error:
            if not self.allow_bad_gold:
                raise
            return RewardResult(accuracy=None, parsed=False, note=str(error))

    def _check(self, name: str, sample: Sample, result: RewardResult) -> None:
        """Raises PluginError unless all numbers are finite, the accuracy is in [0, 1] and the parts are those declared."""
        values = {} if result.accuracy is None else {"accuracy": result.accuracy}
        for part, value in {**result.parts, **values}.items():
            if not math.isfinite(value) or not 0.0 <= value <= 1.0:
                raise PluginError(
                    f"reward {self._named(name)} gave {part} = {value!r} to record {sample.uid!r}; it must be in [0, 1]"
                )
        declared = set(self.rewards[name].parts)
        if result.accuracy is not None and set(result.parts) != declared:
            raise PluginError(
                f"reward {self._named(name)} gave the parts {sorted(result.parts)} to record {sample.uid!r}; "
                f"it declares {sorted(declared)}"
            )

    def _compose(self, name: str, item: RewardInput, result: RewardResult) -> Scored:
        config, accuracy = self.config, result.accuracy
        components = {} if accuracy is None else {"accuracy": accuracy, **result.parts}
        components["format"] = self.form(name, item)
        total = config.accuracy_weight * (accuracy or 0.0) + config.format_weight * components["format"]
        if config.overlong_buffer:
            components["overlong"] = overlong(item.num_tokens, self.max_tokens, overlong_tokens(config, self.max_tokens))
            total += config.overlong_factor * components["overlong"]
        return Scored(
            total=0.0 if accuracy is None else self._weights[name] * total,
            components=components,
            accuracy=accuracy,
            parsed=result.parsed and accuracy is not None,
            judged=accuracy is not None,
            note=result.note,
            reward=name,
        )

    def form(self, name: str, item: RewardInput) -> float:
        """Format reward of a response: 1 when blocks and answer have the form that was asked for, else 0."""
        well_formed = in_form(item.response, self.config.format, opens_thinking=self.opens_thinking)
        return float(well_formed and self.rewards[name].well_formed(item.sample, item.answer or ""))


def score_all(scorer: Scorer, responses: Sequence[Response]) -> tuple[list[Scored | None], list[str]]:
    """Results in order, None for a record whose gold is broken, and those records' problems: all of them, where ``Scorer.score``
    stops at the first.
    """
    try:
        return [*scorer.score(responses)], []
    except BadGoldError:
        pass
    found: list[Scored | None] = []
    problems = []
    for response in responses:
        try:
            found += scorer.score([response])
        except BadGoldError as error:
            found.append(None)
            problems.append(str(error))
    return found, problems


def _distribution(reward: Reward) -> str:
    return f"{type(reward).__module__}.{type(reward).__qualname__}"
