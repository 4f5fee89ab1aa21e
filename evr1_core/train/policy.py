"""The policy of this process: log-probabilities of groups, and optimiser updates on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn

from evr1_core.api import Algorithm, LossBatch, ModelFamily
from evr1_core.config.schema import RunConfig
from evr1_core.rollout.groups import Group
from evr1_core.train.adapters import FOLDER, adapter_state, add_adapters, merged_parameters, save_adapters
from evr1_core.train.hybrid import HybridModel, filler
from evr1_core.train.memory import Masters, checkpoint_activations, lower
from evr1_core.train.metrics import Sums
from evr1_core.train.optim import Optimizer
from evr1_core.train.prefix import pack, response_mask, separate
from evr1_core.train.ranks import ALONE, Ranks
from evr1_core.train.shard import is_sharded, reshard, shard


@frozen(kw_only=True, eq=False)
class Credited:
    """Groups of one update with what their responses are worth.

    ``advantages`` and ``old_logprobs`` ``[B, T]``, ``trained`` bool ``[B]``: rows follow the responses of the groups in order.
    ``old_logprobs`` None: the update is the only one on its samples, so that they are the policy's own.
    """

    groups: Sequence[Group]
    advantages: Tensor
    trained: Tensor
    old_logprobs: Tensor | None = None


@frozen(kw_only=True)
class _Plan:
    """What all processes do in one pass over their groups: so many ``parts`` each, with ``vision`` in every one or in none.
    ``tokens`` and ``sequences`` are trained on, by all of them together."""

    parts: int
    vision: bool
    tokens: int
    sequences: int


class Policy:
    """A model under training, whole in one process or as one of the shards that several processes hold.

    The unit of work is the group: prompts, and their media, are computed once for all their responses where the family allows it.
    With several ``ranks``, each calls the methods with groups of its own, and all of them call the same methods.
    """

    def __init__(
        self, module: nn.Module, family: ModelFamily, processor: Any, config: RunConfig, total_updates: int, ranks: Ranks = ALONE
    ) -> None:
        self.module, self.family, self.processor, self.ranks = module, family, processor, ranks
        self._max_tokens = config.rollout.max_response_tokens
        self._groups_per_batch = config.train.groups_per_batch
        self._share = config.train.share_prefix and family.shared_prefix
        banned = sorted(family.banned_ids(processor))
        self._filler = filler(banned)
        self._dtype = torch.bfloat16 if config.model.dtype == "bfloat16" else None
        if config.train.freeze_vision:
            freeze_vision(module)
        lora = config.lora
        self._adapters = add_adapters(module, lora, base=config.model.path, seed=config.train.seed) if lora.enabled else None
        if config.train.gradient_checkpointing:
            checkpoint_activations(module)
        self.model = HybridModel(module, family, temperature=config.rollout.temperature, banned=banned)
        self.optimizer = Optimizer(self.model, config.train, total_updates, self._put(config))

    def _put(self, config: RunConfig) -> Masters | None:
        """Puts the model in shards, or in its type; float64, which tests use, stays."""
        low = self._dtype
        if self.ranks.size > 1:
            dtype = low or next(self.module.parameters()).dtype
            lower(self.module, dtype, trained=False)
            shard(self.model, self.ranks, dtype, cpu_offload=config.sharding.cpu_offload)
        return Masters(self.module, low) if low and self.ranks.size == 1 else None

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.ranks.device if is_sharded(self.model) else next(self.module.parameters()).device

    def logprobs(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]`` without gradient, in the order of the groups' responses; 0 on padding."""
        self.module.eval()
        plan = self._agree(groups, torch.zeros(0, 0, dtype=torch.bool))
        with torch.no_grad():
            results = [self._forward(part, plan.vision)[0] for part in self._parts(groups)]
            for _ in range(plan.parts - len(results)):
                self._idle(plan.vision)
        reshard(self.model)
        width = max((result.shape[1] for result in results), default=0)
        rows = [nn.functional.pad(result, (0, width - result.shape[1])) for result in results]
        return torch.cat(rows) if rows else torch.zeros(0, 0, device=self.device)

    def update(self, algorithm: Algorithm, work: Credited) -> dict[str, float]:
        """One optimiser step on the groups. Returns metrics; loss terms are those of the whole mini-batch, however it was split."""
        return self.backward(algorithm, work) | self.optimizer.step()

    def backward(self, algorithm: Algorithm, work: Credited) -> dict[str, float]:
        """Adds the gradients of the groups of all processes, and returns the metrics of their loss."""
        self.module.train()
        sums = Sums()
        plan = self._agree(work.groups, _padded_mask(work))
        first = done = 0
        for part in self._parts(work.groups):
            last = first + sum(len(group.responses) for group in part)
            loss = self._part_loss(algorithm, work, part, slice(first, last), plan, sums)
            loss.backward()
            first, done = last, done + 1
        for _ in range(plan.parts - done):
            self._idle(plan.vision).backward()
        return sums.means(self.ranks)

    def _agree(self, groups: Sequence[Group], mask: Tensor) -> _Plan:
        parts = -(-len(groups) // self._groups_per_batch)
        media = any(group.prompt.encoded.grid_thw is not None for group in groups)
        every = self.ranks.gather((parts, media, int(mask.sum()), int(mask.any(dim=-1).sum())))
        return _Plan(
            parts=max(parts for parts, _, _, _ in every),
            vision=self.ranks.size > 1 and any(media for _, media, _, _ in every),
            tokens=sum(tokens for _, _, tokens, _ in every),
            sequences=sum(sequences for _, _, _, sequences in every),
        )

    def _idle(self, vision: bool) -> Tensor:
        """A loss of 0, by the calls of a real one."""
        logprobs, _ = self.model(pack([self._filler], self.device), vision)
        return 0.0 * logprobs.sum()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Name and value of every parameter, for an engine with weights of its own; adapters are merged."""
        for name, value in merged_parameters(self.module):
            yield name, value.to(self._dtype) if self._dtype else value

    def save(self, folder: Path) -> None:
        """Writes what the Auto classes load: weights, config, generation config, processor, tokenizer, chat template; adapters are
        merged, and also by themselves in ``adapter``. All processes call it, one writes."""
        plain = self._adapters is None and not is_sharded(self.model)
        weights = None if plain else {name: weight.cpu() for name, weight in self.weights()}
        adapters = None if self._adapters is None else adapter_state(self.module)
        if not self.ranks.leads:
            return
        module: Any = self.module
        module.save_pretrained(folder, state_dict=weights)
        self.processor.save_pretrained(folder)
        if adapters is not None:
            save_adapters(self._adapters, adapters, folder / FOLDER)

    def _parts(self, groups: Sequence[Group]) -> Iterator[Sequence[Group]]:
        for first in range(0, len(groups), self._groups_per_batch):
            yield groups[first : first + self._groups_per_batch]

    def _forward(self, groups: Sequence[Group], vision: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, entropies and mask, each ``[B, T]``, of the responses of some groups."""
        packed = pack(groups if self._share else separate(groups), self.device)
        chosen, entropy = self.model(packed, vision)
        return _placed(chosen, packed.mask), _placed(entropy.detach(), packed.mask), packed.mask

    def _part_loss(
        self, algorithm: Algorithm, work: Credited, part: Sequence[Group], rows: slice, plan: _Plan, sums: Sums
    ) -> Tensor:
        logprobs, entropy, mask = self._forward(part, plan.vision)
        width = mask.shape[1]
        mask = mask & work.trained[rows].to(mask.device).unsqueeze(1)
        old = logprobs.detach() if work.old_logprobs is None else work.old_logprobs[rows, :width].to(mask.device)
        offline = torch.tensor([response.offline for group in part for response in group.responses], device=mask.device)
        batch = LossBatch(
            logprobs=logprobs,
            old_logprobs=old,
            advantages=work.advantages[rows, :width].to(mask.device),
            mask=mask,
            offline=offline,
            global_tokens=plan.tokens,
            global_sequences=plan.sequences,
            max_tokens=self._max_tokens,
        )
        result = algorithm.policy_loss(batch)
        own = mask & ~offline.unsqueeze(1)
        sums.add("actor/pg_loss", result.loss.detach())
        sums.ratio("actor/entropy", (entropy * own).sum(), own.sum())
        theirs = mask & offline.unsqueeze(1)
        sums.ratio("mix_policy/off_prob", (logprobs.detach().exp() * theirs).sum(), theirs.sum())
        for name, (numerator, denominator) in result.metrics.items():
            sums.ratio(name, numerator, denominator)
        for name, value in result.maxima.items():
            sums.largest(name, value)
        return result.loss


def freeze_vision(module: nn.Module) -> None:
    """Stops gradients of the vision tower, found by the name that Transformers gives it."""
    for name, parameter in module.named_parameters():
        if ".visual." in f".{name}":
            parameter.requires_grad_(False)


def _padded_mask(work: Credited) -> Tensor:
    responses = [response for group in work.groups for response in group.responses]
    if not responses:
        return torch.zeros(0, 0, dtype=torch.bool)
    return response_mask(responses) & work.trained.cpu().unsqueeze(1)


def _placed(values: Tensor, mask: Tensor) -> Tensor:
    """``[B, T]`` with the values in the True places of ``mask``, row by row, and 0 elsewhere."""
    return torch.zeros(mask.shape, dtype=values.dtype, device=values.device).masked_scatter(mask, values)
