"""One training step after the other: groups, scores, credit, updates."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from attrs import define, evolve, frozen
from torch import Tensor

from evr1_core.api import Advantages, Algorithm, RolloutEngine, Sample, Sampling, ScoreBatch
from evr1_core.api.filters import DynamicFilter
from evr1_core.api.tensors import KLController, kl_kind_of, reward_with_kl
from evr1_core.config.schema import RolloutConfig, RunConfig
from evr1_core.registry.hooks import Hooks
from evr1_core.rollout.collect import Mixed, Mixer, sample_groups, score_groups, seed_of
from evr1_core.rollout.groups import Group
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scored, Scorer
from evr1_core.train.credit import (
    advantage_metrics,
    filter_metrics,
    group_metrics,
    length_metrics,
    recorded_logprobs,
    sampled_logprobs,
    score_batch,
    score_metrics,
)
from evr1_core.train.critic import Critic, value_metrics
from evr1_core.train.mismatch import FARTHEST
from evr1_core.train.performance import performance
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.reference import Reference

Draw = Callable[[], Sequence[Sample]]


class Timers:
    """Wall seconds of the phases of a step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time spent inside to ``timing_s/name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            key = f"timing_s/{name}"
            self.seconds[key] = self.seconds.get(key, 0.0) + time.perf_counter() - start


@define(kw_only=True, eq=False)
class Models:
    """The models beside the policy that settings and algorithm ask for."""

    reference: Reference | None = None
    critic: Critic | None = None


class Trainer:
    """The algorithm's step on any policy, engine and scorer. It knows neither a model nor a reward by name."""

    def __init__(
        self,
        *,
        config: RunConfig,
        algorithm: Algorithm,
        policy: Policy,
        engine: RolloutEngine,
        encoder: PromptEncoder,
        scorer: Scorer,
        mixer: Mixer,
        hooks: Hooks,
        models: Models | None = None,
    ) -> None:
        self.config, self.algorithm, self.policy, self.engine = config, algorithm, policy, engine
        self.encoder, self.scorer, self.mixer, self.hooks = encoder, scorer, mixer, hooks
        self.models = models or Models()
        self._sampling = sampling_of(config.rollout)
        kl = config.kl
        self.kl = KLController(
            coef=kl.coef if kl.place != "off" else 0.0,
            target=kl.target if kl.controller == "adaptive" else None,
            horizon=float(kl.horizon),
        )
        self.last_groups: Sequence[Group] = ()
        self.last_scores: Sequence[Sequence[Scored]] = ()

    async def step(self, number: int, samples: Sequence[Sample], more: Draw | None = None) -> dict[str, float]:
        """One step on ``samples``; returns its metrics. ``more`` draws further samples, as many each time, for dynamic sampling.
        ``last_groups`` and ``last_scores`` are kept for a dump."""
        timers = Timers()
        with timers.phase("step"):
            found = await self._groups(number, samples, more, timers)
            groups = found.mixed.groups
            batch = score_batch(groups, found.mixed.scores)
            metrics = found.metrics | length_metrics(groups) | _quality(found.mixed)
            logprobs = self._logprobs(groups, timers)
            batch, more_metrics = await self._completed(number, batch, groups, logprobs, timers)
            metrics |= more_metrics | score_metrics(batch)
            with timers.phase("adv"):
                credit = self._only_kept(self.algorithm.advantages(batch), batch, found)
                trained = self._trained(number, batch, groups)
            metrics |= advantage_metrics(credit.values, batch.mask)
            await self.engine.sleep()
            if self.models.critic is not None:
                with timers.phase("update_critic"):
                    metrics |= self._update_critic(number, self.models.critic, groups, batch, credit)
            updated = self.models.critic is None or number > self.config.critic.warmup_steps
            if updated:
                with timers.phase("update_actor"):
                    metrics |= self._update(number, groups, credit.values.float(), trained, logprobs)
            with timers.phase("update_weights"):
                await self.engine.wake()
                if updated:
                    await self.engine.load_weights(self.policy.weights())
            metrics |= self._follow_kl(metrics, trained)
            self.policy.forget()
        self.last_groups, self.last_scores = groups, found.mixed.scores
        return metrics | timers.seconds | performance(groups, timers.seconds, self.policy, self.config.train.ppo_epochs)

    async def _groups(self, number: int, samples: Sequence[Sample], more: Draw | None, timers: Timers) -> Found:
        """The groups to train on: those of ``samples``, or, with dynamic sampling, as many whose accuracies differ."""
        settings = self.config.filter
        if not settings.dynamic or more is None:
            mixed = await self._sampled(f"{number}", samples, timers)
            return Found(mixed=mixed, metrics=group_metrics(mixed.scores))
        search: DynamicFilter[int] = DynamicFilter(
            target=len(samples), max_tries=settings.max_tries, low=settings.low, high=settings.high
        )
        keys: list[int] = []
        seen: list[list[Scored]] = []
        held = Mixed(groups=[], scores=[])
        while not search.done:
            if search.tries:
                samples = more()
            mixed = await self._sampled(f"{number}:{search.tries}" if search.tries else f"{number}", samples, timers)
            fresh = range(len(seen), len(seen) + len(mixed.scores))
            search.add([(key, [score.accuracy for score in row]) for key, row in zip(fresh, mixed.scores, strict=True)])
            seen += mixed.scores
            place = {key: number for number, key in enumerate([*keys, *fresh])}
            keys = search.candidates
            held = held.joined(mixed).only([place[key] for key in keys])  # the patches of all that were seen would not fit
        search.chosen()
        return Found(mixed=held, metrics=group_metrics(seen) | filter_metrics(search), num_kept=len(search.kept))

    async def _sampled(self, key: str, samples: Sequence[Sample], timers: Timers) -> Mixed:
        with timers.phase("prompts"):
            prompts = self.encoder.encode(samples)
        if not self.algorithm.rollouts:
            groups = self.mixer.only_stored(prompts)
            return Mixed(groups=groups, scores=[[Scored(total=0.0, components={}, accuracy=None, parsed=True)] for _ in groups])
        with timers.phase("gen"):
            groups = await sample_groups(self.engine, prompts, self._sampling, f"{self.config.train.seed}:{key}")
        with timers.phase("reward"):
            scores = score_groups(self.scorer, groups)
            return self.mixer.mix(groups, scores) if self.config.mix.enabled else Mixed(groups=groups, scores=scores)

    def _logprobs(self, groups: Sequence[Group], timers: Timers) -> Logprobs:
        """What the models say of the responses before the step's updates, as far as anything asks for it."""
        config, reference = self.config, self.models.reference
        old = None
        if not self._only_one_update(groups) or config.kl.place == "reward":
            with timers.phase("old_log_prob"):
                old = self.policy.logprobs(groups)
        theirs = None
        if reference is not None:
            with timers.phase("ref"):
                theirs = reference.rows(groups)
        return Logprobs(old=old, reference=theirs, sampled=sampled_logprobs(groups) if self.algorithm.rollouts else None)

    async def _completed(
        self, number: int, batch: ScoreBatch, groups: Sequence[Group], logprobs: Logprobs, timers: Timers
    ) -> tuple[ScoreBatch, dict[str, float]]:
        """The batch with all that the algorithm needs, and what there is to say about it."""
        metrics = {}
        if self.config.kl.place == "reward":
            assert logprobs.old is not None
            assert logprobs.reference is not None
            kind = kl_kind_of("reward", self.config.kl.kind)
            old, theirs = logprobs.old.cpu().double(), logprobs.reference.cpu().double()
            rewards, kl = reward_with_kl(batch.token_rewards, old, theirs, batch.mask, coef=self.kl.coef, kind=kind)
            batch, metrics["actor/reward_kl_penalty"] = evolve(batch, token_rewards=rewards), float(kl)
        if self.models.critic is not None:
            with timers.phase("values"):
                batch = evolve(batch, values=self.models.critic.rows(groups).cpu().double())
        if "greedy_baseline" in self.algorithm.needs:
            with timers.phase("gen"):
                prompts = [group.prompt for group in groups]
                greedy = evolve(self._sampling, n=1, temperature=0.0)
                answers = await sample_groups(self.engine, prompts, greedy, f"{self.config.train.seed}:{number}:greedy")
            with timers.phase("reward"):
                totals = [row[0].total for row in score_groups(self.scorer, answers)]
            metrics["critic/greedy_score/mean"] = sum(totals) / len(totals)
            batch = evolve(batch, greedy_rewards=torch.tensor(totals, dtype=torch.float64)[batch.group_ids])
        return batch, metrics

    @staticmethod
    def _only_kept(credit: Advantages, batch: ScoreBatch, found: Found) -> Advantages:
        """Advantage 0 for groups that fill the batch up: of their responses, equally accurate, format and length alone would be
        taught."""
        if found.num_kept is None:
            return credit
        return evolve(credit, values=credit.values * (batch.group_ids < found.num_kept).unsqueeze(1))

    def _trained(self, number: int, batch: ScoreBatch, groups: Sequence[Group]) -> Tensor:
        """bool ``[B]``: rows that the algorithm, the settings and the listeners let through."""
        keep = self.algorithm.keep(batch)
        trained = batch.judged if keep is None else batch.judged & keep
        if self.config.train.mask_truncated:
            trained = trained & ~torch.tensor([response.truncated for group in groups for response in group.responses])
        for dropped in self.hooks.call("evr1_drop_groups", step=number, batch=batch):
            trained = trained & ~torch.isin(batch.group_ids, torch.tensor(sorted(dropped), dtype=torch.long))
        return trained

    def _update_critic(
        self, number: int, critic: Critic, groups: Sequence[Group], batch: ScoreBatch, credit: Advantages
    ) -> dict[str, float]:
        assert batch.values is not None
        assert credit.returns is not None
        first_rows = _first_rows(groups)
        results = []
        for chosen in self._minibatches(number, groups, "critic"):
            rows = torch.cat([torch.arange(*first_rows[place : place + 2]) for place in chosen])
            own = [groups[place] for place in chosen]
            results.append(critic.update(own, batch.values[rows], credit.returns[rows], batch.mask[rows]))
        return _averaged(results, "critic") | value_metrics(batch.values, credit.returns, batch.mask)

    def _only_one_update(self, groups: Sequence[Group]) -> bool:
        train = self.config.train
        return (train.prompts_per_update or len(groups)) >= len(groups) and train.ppo_epochs == 1

    def _minibatches(self, number: int, groups: Sequence[Group], *names: str) -> Iterator[list[int]]:
        """Places of the groups of each optimiser update; the order depends on seed and step alone."""
        train = self.config.train
        size = train.prompts_per_update or len(groups)
        for epoch in range(train.ppo_epochs):
            order = list(range(len(groups)))
            if not self._only_one_update(groups):
                random.Random(seed_of(train.seed, number, epoch, *names)).shuffle(order)
            for first in range(0, len(groups), size):
                yield order[first : first + size]

    def _update(
        self, number: int, groups: Sequence[Group], advantages: Tensor, trained: Tensor, logprobs: Logprobs
    ) -> dict[str, float]:
        """All optimiser updates of a step. Metrics of several updates are averaged, the gradient norm also by its maximum."""
        first_rows, recorded = _first_rows(groups), recorded_logprobs(groups)
        results: list[dict[str, float]] = []
        for chosen in self._minibatches(number, groups):
            rows = torch.cat([torch.arange(*first_rows[place : place + 2]) for place in chosen])
            if not bool(trained[rows].any()):
                continue  # nothing of this part is trained on: a step on weight decay alone would still move the weights
            work = Credited(
                groups=[groups[place] for place in chosen],
                advantages=advantages[rows],
                trained=trained[rows],
                old_logprobs=None if self._only_one_update(groups) else _of(logprobs.old, rows),
                sampled_logprobs=_of(logprobs.sampled, rows),
                reference_logprobs=_of(logprobs.reference, rows) if self.config.kl.place == "loss" else None,
                recorded_logprobs=_of(recorded, rows),
            )
            results.append(self.policy.update(self.algorithm, work, self.kl.coef))
        return _averaged(results, "actor") | {"actor/updates": float(len(results))}

    def _follow_kl(self, metrics: dict[str, float], trained: Tensor) -> dict[str, float]:
        """The factor that was used, after which it is moved towards its target."""
        seen = {"loss": "actor/kl_loss", "reward": "actor/reward_kl_penalty"}.get(self.config.kl.place)
        if seen is None:
            return {}
        used = self.kl.coef
        if seen in metrics:
            self.kl.update(metrics[seen], int(trained.sum()))
        return {"actor/kl_coef": used}


@frozen(kw_only=True, eq=False)
class Found:
    """Groups to train on; ``metrics`` of all that were sampled for them. ``num_kept``: so many, the first, passed the filter, and
    the others only fill the batch up; None: nothing was filtered."""

    mixed: Mixed
    metrics: dict[str, float]
    num_kept: int | None = None


@frozen(kw_only=True, eq=False)
class Logprobs:
    """Of every response token, ``[B, T]``: by the policy before its updates, the reference model, the engine; None: nobody asks."""

    old: Tensor | None
    reference: Tensor | None
    sampled: Tensor | None


def sampling_of(rollout: RolloutConfig) -> Sampling:
    """How training samples."""
    return Sampling(
        n=rollout.n,
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        max_tokens=rollout.max_response_tokens,
    )


def _of(values: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if values is None else values[rows.to(values.device)]


def _first_rows(groups: Sequence[Group]) -> list[int]:
    """The row that each group's first response has, and the number of all rows at the end."""
    rows = [0]
    for group in groups:
        rows.append(rows[-1] + len(group.responses))
    return rows


def _averaged(results: Sequence[dict[str, float]], who: str) -> dict[str, float]:
    """Metrics of several updates as one: means, but the largest gradient norm and distance from the sampler, the last learning
    rate, the sum of skipped updates. ``who``: ``actor`` or ``critic``."""
    names = {name for result in results for name in result}
    means = {}
    for name in names:
        values = [result[name] for result in results if name in result]
        means[name] = max(values) if name == FARTHEST else sum(values) / len(values)
    norms = [result[f"{who}/grad_norm"] for result in results if f"{who}/grad_norm" in result]
    if norms:
        means[f"{who}/grad_norm_max"] = max(norms)
    if results:
        means[f"{who}/lr"] = results[-1][f"{who}/lr"]
        means[f"{who}/skipped_updates"] = sum(result[f"{who}/skipped_updates"] for result in results)
    return means


def _quality(mixed: Mixed) -> dict[str, float]:
    pairs = [
        (response, score)
        for group, row in zip(mixed.groups, mixed.scores, strict=True)
        for response, score in zip(group.responses, row, strict=True)
        if not response.offline
    ]
    metrics = {}
    if pairs:
        metrics["response/unparsed_ratio"] = sum(not score.parsed for _, score in pairs) / len(pairs)
        metrics["response/not_judged"] = float(sum(not score.judged for _, score in pairs))
    if mixed.candidates:
        metrics["mix_policy/offline_candidates"] = float(mixed.candidates)
        metrics["mix_policy/triggered_groups"] = float(mixed.triggered)
        metrics["mix_policy/replaced_groups"] = float(mixed.replaced)
    return metrics
