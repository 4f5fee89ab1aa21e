"""The policy in this process: log-probabilities of groups, and optimiser updates on them."""

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
from evr1_core.train.logprobs import token_logprobs
from evr1_core.train.metrics import Sums
from evr1_core.train.optim import Optimizer
from evr1_core.train.prefix import pack, response_mask, separate


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


class Policy:
    """A model under training, in one process.

    The unit of work is the group: prompts, and their media, are computed once for all their responses where the family allows it.
    """

    def __init__(self, module: nn.Module, family: ModelFamily, processor: Any, config: RunConfig, total_updates: int) -> None:
        self.module, self.family, self.processor = module, family, processor
        self._temperature = config.rollout.temperature
        self._max_tokens = config.rollout.max_response_tokens
        self._groups_per_batch = config.train.groups_per_batch
        self._share = config.train.share_prefix and family.shared_prefix
        self._banned = sorted(family.banned_ids(processor))
        if config.train.freeze_vision:
            freeze_vision(module)
        self.optimizer = Optimizer(module, config.train, total_updates)

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return next(self.module.parameters()).device

    def logprobs(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]`` without gradient, in the order of the groups' responses; 0 on padding."""
        self.module.eval()
        with torch.no_grad():
            parts = [self._forward(part)[0] for part in self._parts(groups)]
        width = max(part.shape[1] for part in parts)
        return torch.cat([nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])

    def update(self, algorithm: Algorithm, work: Credited) -> dict[str, float]:
        """One optimiser step on the groups. Returns metrics; loss terms are those of the whole mini-batch, however it was split."""
        self.module.train()
        sums = Sums()
        mask = _padded_mask(work)
        tokens, sequences = int(mask.sum()), int(mask.any(dim=1).sum())
        first = 0
        for part in self._parts(work.groups):
            last = first + sum(len(group.responses) for group in part)
            loss = self._part_loss(algorithm, work, part, slice(first, last), tokens, sequences, sums)
            loss.backward()
            first = last
        return sums.means() | self.optimizer.step()

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Name and value of every parameter, for an engine with weights of its own."""
        for name, parameter in self.module.named_parameters():
            yield name, parameter.detach()

    def save(self, folder: Path) -> None:
        """Writes what the Auto classes load: weights, config, generation config, processor, tokenizer, chat template."""
        module: Any = self.module
        module.save_pretrained(folder)
        self.processor.save_pretrained(folder)

    def _parts(self, groups: Sequence[Group]) -> Iterator[Sequence[Group]]:
        for first in range(0, len(groups), self._groups_per_batch):
            yield groups[first : first + self._groups_per_batch]

    def _forward(self, groups: Sequence[Group]) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, entropies and mask, each ``[B, T]``, of the responses of some groups."""
        packed = pack(groups if self._share else separate(groups), self.device)
        features = None
        if packed.patches is not None and packed.grid_thw is not None:
            features = self.family.vision(self.module, packed.patches, packed.grid_thw)
        hidden = self.family.forward(self.module, packed.batch, features)[packed.rows, packed.columns]
        chosen, entropy = token_logprobs(
            hidden, self.family.head(self.module), packed.targets, temperature=self._temperature, banned=self._banned
        )
        return _placed(chosen, packed.mask), _placed(entropy.detach(), packed.mask), packed.mask

    def _part_loss(
        self, algorithm: Algorithm, work: Credited, part: Sequence[Group], rows: slice, tokens: int, sequences: int, sums: Sums
    ) -> Tensor:
        logprobs, entropy, mask = self._forward(part)
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
            global_tokens=tokens,
            global_sequences=sequences,
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
    return response_mask(responses) & work.trained.cpu().unsqueeze(1)


def _placed(values: Tensor, mask: Tensor) -> Tensor:
    """``[B, T]`` with the values in the True places of ``mask``, row by row, and 0 elsewhere."""
    return torch.zeros(mask.shape, dtype=values.dtype, device=values.device).masked_scatter(mask, values)
