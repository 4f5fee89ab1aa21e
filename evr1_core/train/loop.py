"""One training step after the other: groups, scores, credit, updates."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from evr1_core.api import Algorithm, RolloutEngine, Sample, Sampling, ScoreBatch
from evr1_core.config.schema import RunConfig
from evr1_core.registry.hooks import Hooks
from evr1_core.rollout.collect import Mixed, Mixer, sample_groups, score_groups, seed_of
from evr1_core.rollout.groups import Group
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Scored, Scorer
from evr1_core.train.credit import advantage_metrics, length_metrics, score_batch, score_metrics
from evr1_core.train.policy import Credited, Policy


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
    ) -> None:
        self.config, self.algorithm, self.policy, self.engine = config, algorithm, policy, engine
        self.encoder, self.scorer, self.mixer, self.hooks = encoder, scorer, mixer, hooks
        rollout = config.rollout
        self._sampling = Sampling(
            n=rollout.n,
            temperature=rollout.temperature,
            top_p=rollout.top_p,
            top_k=rollout.top_k,
            max_tokens=rollout.max_response_tokens,
        )
        self.last_groups: Sequence[Group] = ()
        self.last_scores: Sequence[Sequence[Scored]] = ()

    async def step(self, number: int, samples: Sequence[Sample]) -> dict[str, float]:
        """One step on ``samples``; returns its metrics. ``last_groups`` and ``last_scores`` are kept for a dump."""
        timers = Timers()
        with timers.phase("step"):
            mixed = await self._groups(number, samples, timers)
            batch = score_batch(mixed.groups, mixed.scores)
            metrics = score_metrics(batch, [score.accuracy for row in mixed.scores for score in row])
            metrics |= length_metrics(mixed.groups) | _quality(mixed)
            with timers.phase("adv"):
                advantages = self.algorithm.advantages(batch).values
                trained = self._trained(number, batch)
            metrics |= advantage_metrics(advantages, batch.mask)
            with timers.phase("update_actor"):
                metrics |= self._update(number, mixed.groups, advantages.float(), trained)
            with timers.phase("update_weights"):
                await self.engine.load_weights(self.policy.weights())
        self.last_groups, self.last_scores = mixed.groups, mixed.scores
        return metrics | timers.seconds | _throughput(mixed.groups, timers.seconds)

    async def _groups(self, number: int, samples: Sequence[Sample], timers: Timers) -> Mixed:
        with timers.phase("prompts"):
            prompts = self.encoder.encode(samples)
        if not self.algorithm.rollouts:
            groups = self.mixer.only_stored(prompts)
            return Mixed(groups=groups, scores=[[Scored(total=0.0, components={}, accuracy=None, parsed=True)] for _ in groups])
        with timers.phase("gen"):
            groups = await sample_groups(self.engine, prompts, self._sampling, f"{self.config.train.seed}:{number}")
        with timers.phase("reward"):
            scores = score_groups(self.scorer, groups)
            return self.mixer.mix(groups, scores) if self.config.mix.enabled else Mixed(groups=groups, scores=scores)

    def _trained(self, number: int, batch: ScoreBatch) -> Tensor:
        """bool ``[B]``: rows that the algorithm and the listeners let through."""
        keep = self.algorithm.keep(batch)
        trained = batch.judged if keep is None else batch.judged & keep
        for dropped in self.hooks.call("evr1_drop_groups", step=number, batch=batch):
            trained = trained & ~torch.isin(batch.group_ids, torch.tensor(sorted(dropped), dtype=torch.long))
        return trained

    def _update(self, number: int, groups: Sequence[Group], advantages: Tensor, trained: Tensor) -> dict[str, float]:
        """All optimiser updates of a step. Metrics of several updates are averaged, the gradient norm also by its maximum."""
        train = self.config.train
        size = train.prompts_per_update or len(groups)
        first_rows = _first_rows(groups)
        only_one = size >= len(groups) and train.ppo_epochs == 1
        old = None if only_one else self.policy.logprobs(groups)
        results: list[dict[str, float]] = []
        for epoch in range(train.ppo_epochs):
            order = list(range(len(groups)))
            if not only_one:
                random.Random(seed_of(train.seed, number, epoch)).shuffle(order)
            for i in range(0, len(groups), size):
                chosen = order[i : i + size]
                rows = torch.cat([torch.arange(*first_rows[place : place + 2]) for place in chosen])
                if not bool(trained[rows].any()):
                    continue  # nothing of this part is trained on: a step on weight decay alone would still move the weights
                work = Credited(
                    groups=[groups[place] for place in chosen],
                    advantages=advantages[rows],
                    trained=trained[rows],
                    old_logprobs=None if old is None else old[rows],
                )
                results.append(self.policy.update(self.algorithm, work))
        return _averaged(results) | {"actor/updates": float(len(results))}


def _first_rows(groups: Sequence[Group]) -> list[int]:
    """The row that each group's first response has, and the number of all rows at the end."""
    rows = [0]
    for group in groups:
        rows.append(rows[-1] + len(group.responses))
    return rows


def _averaged(results: Sequence[dict[str, float]]) -> dict[str, float]:
    names = {name for result in results for name in result}
    means = {}
    for name in names:
        values = [result[name] for result in results if name in result]
        means[name] = sum(values) / len(values)
    norms = [result["actor/grad_norm"] for result in results if "actor/grad_norm" in result]
    if norms:
        means["actor/grad_norm_max"] = max(norms)
    if results:
        means["actor/lr"] = results[-1]["actor/lr"]
        means["actor/skipped_updates"] = sum(result["actor/skipped_updates"] for result in results)
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


def _throughput(groups: Sequence[Group], seconds: dict[str, float]) -> dict[str, float]:
    response_tokens = sum(len(response.token_ids) for group in groups for response in group.responses)
    tokens = response_tokens + sum(group.prompt.num_tokens * len(group.responses) for group in groups)
    metrics = {
        "perf/total_num_tokens": float(tokens),
        "perf/time_per_step": seconds["timing_s/step"],
        "perf/throughput": tokens / seconds["timing_s/step"],
    }
    for phase, count in (("gen", response_tokens), ("reward", response_tokens), ("adv", tokens), ("update_actor", tokens)):
        if f"timing_s/{phase}" in seconds and count:
            metrics[f"timing_per_token_ms/{phase}"] = 1000 * seconds[f"timing_s/{phase}"] / count
    return metrics
