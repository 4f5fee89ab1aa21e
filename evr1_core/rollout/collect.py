"""Groups from an engine, and the stored trajectories that take the last place of some."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from evr1_core.api import Request, RolloutEngine, Sampling
from evr1_core.config.schema import MixConfig
from evr1_core.rollout.groups import EncodedPrompt, Group, Response, check_sampled, mixed, offline_response, sampled
from evr1_core.rollout.scoring import Response as Answered
from evr1_core.rollout.scoring import Scored, Scorer


async def sample_groups(engine: RolloutEngine, prompts: Sequence[EncodedPrompt], sampling: Sampling, key: str) -> list[Group]:
    """n responses to every prompt. The draws of a prompt depend on ``key``, which names seed and step, and on its uid alone."""
    requests = [
        Request(
            uid=prompt.sample.uid,
            text=prompt.text,
            clips=prompt.clips,
            sampling=evolve(sampling, seed=seed_of(key, prompt.sample.uid)),
        )
        for prompt in prompts
    ]
    answers = await engine.generate(requests)
    for prompt, rollouts in zip(prompts, answers, strict=True):
        check_sampled(prompt, rollouts)
    return [
        Group(prompt=prompt, responses=[sampled(rollout) for rollout in rollouts])
        for prompt, rollouts in zip(prompts, answers, strict=True)
    ]


def seed_of(*parts: object) -> int:
    """A seed in [0, 2^63) that depends on all the parts and on nothing else."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def score_groups(scorer: Scorer, groups: Sequence[Group]) -> list[list[Scored]]:
    """The scores of all responses, by group, from one call for all of them."""
    scores = iter(scorer.score([_answered(group, response) for group in groups for response in group.responses]))
    return [[next(scores) for _ in group.responses] for group in groups]


def _answered(group: Group, response: Response) -> Answered:
    return Answered(
        sample=group.prompt.sample,
        text=response.text,
        num_tokens=len(response.token_ids),
        truncated=response.truncated,
        boxes=group.prompt.boxes,
    )


def mix_plan(
    online_acc: Sequence[Sequence[float | None]],
    has_offline: Sequence[bool],
    *,
    trigger_below: float | None,
    offline_score: Sequence[float | None],
    min_offline: float | None,
) -> list[bool]:
    """Which groups take their stored trajectory: those with one whose sampled responses do badly enough (mean accuracy below
    ``trigger_below``; not judged counts as 0) and whose trajectory is good enough (at least ``min_offline``)."""
    plan = []
    for accuracies, has, score in zip(online_acc, has_offline, offline_score, strict=True):
        mean = sum(accuracy or 0.0 for accuracy in accuracies) / len(accuracies)
        wanted = has and (trigger_below is None or mean < trigger_below)
        plan.append(wanted and (min_offline is None or (score is not None and score >= min_offline)))
    return plan


@frozen(kw_only=True)
class Mixed:
    """Groups and scores after replacement; counts of groups with a trajectory, triggered, and replaced."""

    groups: list[Group]
    scores: list[list[Scored]]
    candidates: int = 0
    triggered: int = 0
    replaced: int = 0

    def joined(self, more: Mixed) -> Mixed:
        """Both together."""
        return Mixed(
            groups=self.groups + more.groups,
            scores=self.scores + more.scores,
            candidates=self.candidates + more.candidates,
            triggered=self.triggered + more.triggered,
            replaced=self.replaced + more.replaced,
        )

    def only(self, places: Sequence[int]) -> Mixed:
        """Some of the groups; the counts stay those of all."""
        return evolve(self, groups=[self.groups[place] for place in places], scores=[self.scores[place] for place in places])


@frozen(kw_only=True, eq=False)
class Mixer:
    """Puts stored trajectories (arXiv:2504.14945) in the last slot of sampled groups."""

    config: MixConfig
    tokenizer: Any
    eos_ids: tuple[int, ...]
    banned_ids: frozenset[int]
    max_tokens: int
    scorer: Scorer

    def mix(self, groups: Sequence[Group], scores: Sequence[list[Scored]]) -> Mixed:
        """Replaces the last response where the plan says so; only the replaced rows are scored anew."""
        config = self.config
        has = [group.prompt.sample.offline is not None for group in groups]
        online = [[score.accuracy for score in row] for row in scores]
        nothing: list[float | None] = [None] * len(groups)
        triggered = mix_plan(online, has, trigger_below=config.trigger_below, offline_score=nothing, min_offline=None)
        places = [place for place, wanted in enumerate(triggered) if wanted]
        trajectories = {place: self.trajectory(groups[place].prompt) for place in places}
        fresh = self.scorer.score([_answered(groups[place], trajectories[place]) for place in places])
        theirs = dict(zip(places, fresh, strict=True))
        totals = [theirs[place].total if place in theirs else None for place in range(len(groups))]
        plan = mix_plan(online, has, trigger_below=config.trigger_below, offline_score=totals, min_offline=config.min_offline_score)
        return Mixed(
            groups=[mixed(group, trajectories[i]) if plan[i] else group for i, group in enumerate(groups)],
            scores=[[*row[:-1], theirs[i]] if plan[i] else row for i, row in enumerate(scores)],
            candidates=sum(has),
            triggered=sum(triggered),
            replaced=sum(plan),
        )

    def trajectory(self, prompt: EncodedPrompt) -> Response:
        """The stored trajectory of a prompt's sample as a response."""
        return offline_response(prompt.sample, self.tokenizer, self.eos_ids, self.banned_ids, self.max_tokens)

    def only_stored(self, prompts: Sequence[EncodedPrompt]) -> list[Group]:
        """Groups of one: the stored trajectory, for algorithms that sample nothing."""
        return [Group(prompt=prompt, responses=[self.trajectory(prompt)]) for prompt in prompts]
