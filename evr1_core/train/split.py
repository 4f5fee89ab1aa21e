"""One step's work over several processes, in the places of encoder, engine, scorer, listeners and policy. The loop cannot tell.

All processes run the same loop on the same samples. What is costly is done once, each process doing its share: decoding, encoding,
sampling, judging, training. Token ids and numbers are exchanged; pixels never leave a process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import attrs
import torch
from torch import Tensor, nn

from evr1_core.api import Algorithm, Evr1Error, ModelFamily, Request, Rollout, RolloutEngine, Sample
from evr1_core.registry.hooks import Hooks
from evr1_core.rollout.groups import EncodedPrompt, Group
from evr1_core.rollout.prompts import PromptEncoder
from evr1_core.rollout.scoring import Response, Scored, Scorer
from evr1_core.train.balance import attention_workload, partition
from evr1_core.train.critic import Critic
from evr1_core.train.loop import Models
from evr1_core.train.passes import Passes
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.ranks import Ranks
from evr1_core.train.reference import Reference


def split_hooks(hooks: Hooks, ranks: Ranks) -> Hooks:
    """The listeners of a run; the same for one process."""
    return hooks if ranks.size == 1 else cast(Hooks, SplitHooks(hooks, ranks))


@attrs.define(kw_only=True, eq=False)
class Work:
    """What a step is done with."""

    encoder: PromptEncoder
    engine: RolloutEngine
    scorer: Scorer
    policy: Policy
    models: Models

    def split(self, ranks: Ranks) -> Work:
        """The same over all processes; it stands in the same places, and the loop cannot tell."""
        if ranks.size == 1:
            return self
        encoder = SplitEncoder(self.encoder, ranks)
        reference, critic = self.models.reference, self.models.critic
        return Work(
            encoder=cast(PromptEncoder, encoder),
            engine=SplitEngine(engine=self.engine, encoder=encoder, ranks=ranks),
            scorer=cast(Scorer, SplitScorer(self.scorer, ranks)),
            policy=cast(Policy, SplitPolicy(self.policy, encoder)),
            models=Models(
                reference=cast(Reference, SplitPasses(reference, encoder)) if reference else None,
                critic=cast(Critic, SplitCritic(critic, encoder)) if critic else None,
            ),
        )


class SplitEncoder:
    """Every process encodes its share of the prompts; those of others come without clips and patches."""

    def __init__(self, encoder: PromptEncoder, ranks: Ranks) -> None:
        self._encoder, self._ranks = encoder, ranks
        self._owners: dict[str, int] = {}  # of uids
        self._restored: WeakKeyDictionary[EncodedPrompt, EncodedPrompt] = WeakKeyDictionary()

    def encode(self, samples: Sequence[Sample]) -> list[EncodedPrompt]:
        """The prompts of ``samples``, in order."""
        for place, uid in enumerate(dict.fromkeys(sample.uid for sample in samples)):
            self._owners[uid] = place % self._ranks.size
        owners = self.owners([sample.uid for sample in samples])
        own: list[EncodedPrompt] = []

        def work(share: Sequence[Sample]) -> list[EncodedPrompt]:
            own.extend(self._encoder.encode(share))
            return [_light(prompt) for prompt in own]

        light = self._ranks.spread(samples, work, owners)
        mine = iter(own)
        return [next(mine) if owner == self._ranks.rank else prompt for prompt, owner in zip(light, owners, strict=True)]

    def length(self, sample: Sample) -> int:
        """As of the encoder behind it."""
        return self._encoder.length(sample)

    def owners(self, uids: Iterable[str]) -> list[int]:
        """The process that has encoded each of these prompts, clips and all."""
        return [self._owners[uid] for uid in uids]

    def restored(self, group: Group) -> Group:
        """The group with its patches, encoded here where another process did it."""
        encoded = group.prompt.encoded
        if encoded.patches is not None or encoded.grid_thw is None:
            return group
        if group.prompt not in self._restored:
            self._restored[group.prompt] = self._encoder.encode([group.prompt.sample])[0]
        return attrs.evolve(group, prompt=self._restored[group.prompt])


def _light(prompt: EncodedPrompt) -> EncodedPrompt:
    return attrs.evolve(prompt, clips=(), encoded=attrs.evolve(prompt.encoded, patches=None))


@attrs.define(kw_only=True)
class SplitEngine(RolloutEngine):
    """Every process answers the prompts that it has encoded, by an engine of its own."""

    api = 1

    engine: RolloutEngine
    encoder: SplitEncoder
    ranks: Ranks

    async def start(self, model_path: str, family: ModelFamily, processor: Any, module: nn.Module | None) -> None:
        await self.engine.start(model_path, family, processor, module)

    async def generate(self, requests: Sequence[Request]) -> list[list[Rollout]]:
        owners = self.encoder.owners(request.uid for request in requests)
        own = self.ranks.own(requests, owners)
        results: list[list[Rollout]] | Evr1Error
        try:
            results = await self.engine.generate(own) if own else []
        except Evr1Error as error:
            results = error
        return self.ranks.joined(results, owners)

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        shards = iter(weights)
        problem: Evr1Error | None = None
        try:
            await self.engine.load_weights(shards)
        except Evr1Error as error:
            problem = error
        for _ in shards:
            pass  # what is left has to be gathered by all processes together, whoever wants it
        for each in self.ranks.gather(problem):
            if each is not None:
                raise each

    async def sleep(self) -> None:
        await self.engine.sleep()

    async def wake(self) -> None:
        await self.engine.wake()

    async def close(self) -> None:
        await self.engine.close()


class SplitScorer:
    """Every process scores its share of the responses: what a judge says of one is said once."""

    def __init__(self, scorer: Scorer, ranks: Ranks) -> None:
        self._scorer, self._ranks = scorer, ranks

    def score(self, items: Sequence[Response]) -> list[Scored]:
        """One result for every response, in order."""
        return self._ranks.spread(items, self._scorer.score)


class SplitHooks:
    """Listeners of the leading process alone: they hear an event once, and all processes heed what they drop."""

    def __init__(self, hooks: Hooks, ranks: Ranks) -> None:
        self._hooks, self._ranks = hooks, ranks
        self.names, self.notes = hooks.names, hooks.notes

    def call(self, event: str, **arguments: Any) -> list[Any]:
        """The answers to an event."""
        return self._ranks.led(lambda: self._hooks.call(event, **arguments))


class SplitPasses:
    """Every process computes its share of the groups, balanced by work."""

    def __init__(self, passes: Passes, encoder: SplitEncoder) -> None:
        self._passes, self._encoder, self.ranks = passes, encoder, passes.ranks
        self.module, self.family = passes.module, passes.family

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self._passes.device

    def rows(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]``, on the CPU, as of a model in one process."""
        shares = assigned(groups, self.ranks.size)
        parts = self.ranks.gather(self._passes.rows(self._own(groups, shares)).cpu())
        width = max(part.shape[1] for part in parts)
        rows = torch.cat([nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])
        order = torch.cat([_rows(groups, share) for share in shares])
        return torch.empty_like(rows).index_copy_(0, order, rows)

    def _own(self, groups: Sequence[Group], shares: Sequence[Sequence[int]]) -> list[Group]:
        return [self._encoder.restored(groups[place]) for place in shares[self.ranks.rank]]


class SplitPolicy(SplitPasses):
    """A policy whose updates take the groups of all processes."""

    def __init__(self, policy: Policy, encoder: SplitEncoder) -> None:
        super().__init__(policy, encoder)
        self._policy = policy

    def logprobs(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]`` as of a policy in one process."""
        return self.rows(groups)

    def update(self, algorithm: Algorithm, work: Credited, kl_coef: float = 0.0) -> dict[str, float]:
        """One optimiser step, with the metrics of all processes."""
        shares = assigned(work.groups, self.ranks.size)
        rows = _rows(work.groups, shares[self.ranks.rank])
        values = {field.name: getattr(work, field.name) for field in attrs.fields(Credited)}
        own: dict[str, Any] = {name: _of(value, rows) for name, value in values.items() if name != "groups"}
        metrics = self._policy.update(algorithm, Credited(groups=self._own(work.groups, shares), **own), kl_coef)
        return metrics | balance_metrics(_lengths(work.groups), shares)

    def forget(self) -> None:
        """Lets go of the vision features of the step's prompts."""
        self._policy.forget()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Name and whole value of every parameter; all processes have to go through all of them."""
        return self._policy.weights()

    def save(self, folder: Path) -> None:
        """Writes the model, once."""
        self._policy.save(folder)


class SplitCritic(SplitPasses):
    """A critic whose updates take the groups of all processes."""

    def __init__(self, critic: Critic, encoder: SplitEncoder) -> None:
        super().__init__(critic, encoder)
        self._critic = critic

    def update(self, groups: Sequence[Group], values: Tensor, returns: Tensor, mask: Tensor) -> dict[str, float]:
        """One optimiser step, with the metrics of all processes."""
        shares = assigned(groups, self.ranks.size)
        rows = _rows(groups, shares[self.ranks.rank])
        return self._critic.update(self._own(groups, shares), *(_of(each, rows) for each in (values, returns, mask)))


def _of(value: Any, rows: Tensor) -> Any:
    return value[rows.to(value.device)] if isinstance(value, Tensor) else value


def assigned(groups: Sequence[Group], size: int) -> list[list[int]]:
    """The places of the groups that each process trains on: parts of like work, and of equal size where that can be; a process is
    left without groups when there are too few."""
    lengths = _lengths(groups)
    parts = min(size, len(groups))
    shares = partition(lengths, parts, equal_size=len(groups) % parts == 0, workload=attention_workload)
    return shares + [[] for _ in range(size - parts)]


def balance_metrics(lengths: Sequence[int], shares: Sequence[Sequence[int]]) -> dict[str, float]:
    """Tokens of each process: as dealt out, and as they would be if each took its part of the groups in order."""
    size = len(shares)
    cuts = [len(lengths) * rank // size for rank in range(size + 1)]
    plain = [sum(lengths[first:last]) for first, last in itertools.pairwise(cuts)]
    dealt = [sum(lengths[place] for place in share) for share in shares]
    return {
        "global_seqlen/min": float(min(plain)),
        "global_seqlen/max": float(max(plain)),
        "global_seqlen/minmax_diff": float(max(plain) - min(plain)),
        "global_seqlen/balanced_min": float(min(dealt)),
        "global_seqlen/balanced_max": float(max(dealt)),
        "global_seqlen/mean": sum(lengths) / size,
    }


def _lengths(groups: Sequence[Group]) -> list[int]:
    """Tokens of each group, its prompt counted once."""
    return [group.prompt.num_tokens + sum(len(response.token_ids) for response in group.responses) for group in groups]


def _rows(groups: Sequence[Group], places: Sequence[int]) -> Tensor:
    """int64: the rows of the responses of some groups."""
    firsts = [0]
    for group in groups:
        firsts.append(firsts[-1] + len(group.responses))
    rows = [row for place in places for row in range(firsts[place], firsts[place + 1])]
    return torch.tensor(rows, dtype=torch.long)
