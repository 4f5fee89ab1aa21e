"""Passes of a model over groups: which groups go together, and what all processes have to do in step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn

from evr1_core.api import ModelFamily
from evr1_core.config.schema import RunConfig
from evr1_core.rollout.groups import Group
from evr1_core.train.balance import by_budget
from evr1_core.train.features import with_media
from evr1_core.train.hybrid import HybridModel, filler
from evr1_core.train.memory import Masters, lower
from evr1_core.train.prefix import pack, separate
from evr1_core.train.ranks import Ranks
from evr1_core.train.shard import is_sharded, reshard, shard


@frozen(kw_only=True, eq=False)
class Part:
    """Groups of one forward pass, and the places of their responses among those of all groups, ``rows`` int64 ``[R]``."""

    groups: Sequence[Group]
    rows: Tensor


@frozen(kw_only=True)
class Agreed:
    """What all processes do in one pass over their groups: so many ``parts`` each, with ``vision`` in every one or in none.
    ``tokens`` and ``sequences`` are trained on, by all of them together."""

    parts: int
    vision: bool
    tokens: int
    sequences: int


class Passes:
    """A model that looks at groups, whole in one process or as one of the shards that several processes hold.

    The unit of work is the group: prompts, and their media, are computed once for all their responses where the family allows it.
    With several ``ranks``, each calls the methods with groups of its own, and all of them call the same methods.
    """

    model: HybridModel  # what a subclass computes, a value for every response token first

    def __init__(self, module: nn.Module, family: ModelFamily, processor: Any, config: RunConfig, ranks: Ranks) -> None:
        self.module, self.family, self.processor, self.ranks = module, family, processor, ranks
        self._groups_per_batch, self._max_tokens_per_batch = config.train.groups_per_batch, config.train.tokens_per_batch
        self._share = config.train.share_prefix and family.shared_prefix
        self.banned = sorted(family.banned_ids(processor))
        self._filler = filler(self.banned)

    def place(self, config: RunConfig) -> Masters | None:
        """Puts a model that is going to be trained in shards, and in the type that it computes in; returns the copies for the
        optimiser, where they are not the parameters themselves."""
        low = torch.bfloat16 if config.model.dtype == "bfloat16" else None
        if self.ranks.size == 1:
            return Masters(self.model, low) if low else None
        dtype = low or next(self.module.parameters()).dtype
        lower(self.model, dtype, trained=False)
        shard(self.model, self.ranks, dtype, cpu_offload=config.sharding.cpu_offload)
        return None

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.ranks.device if is_sharded(self.model) else next(self.module.parameters()).device

    def rows(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]``: what the model says of every response token, without gradient; 0 on padding. Rows follow the
        responses of the groups in order."""
        self.module.eval()
        parts = self.parts(groups)
        agreed = self.agree(groups, len(parts), torch.zeros(0, 0, dtype=torch.bool))
        count = sum(len(group.responses) for group in groups)
        width = max((len(response.token_ids) for group in groups for response in group.responses), default=0)
        out = torch.zeros(count, width, device=self.device)
        with torch.no_grad():
            for part in parts:
                values = self.forward(part.groups, agreed.vision)[0].to(out.dtype)
                out[part.rows.to(out.device), : values.shape[1]] = values
            for _ in range(agreed.parts - len(parts)):
                self.idle(agreed.vision)
        reshard(self.model)
        return out

    def parts(self, groups: Sequence[Group]) -> list[Part]:
        """The groups by forward pass: so many at a time, or by a budget of tokens."""
        if not groups:
            return []
        firsts = [0]
        for group in groups:
            firsts.append(firsts[-1] + len(group.responses))
        if self._max_tokens_per_batch:
            places = by_budget([self._length(group) for group in groups], self._max_tokens_per_batch)
        else:
            size = self._groups_per_batch
            places = [list(range(first, min(first + size, len(groups)))) for first in range(0, len(groups), size)]
        return [
            Part(
                groups=[groups[place] for place in part],
                rows=torch.cat([torch.arange(*firsts[place : place + 2]) for place in part]),
            )
            for part in places
        ]

    def _length(self, group: Group) -> int:
        prompts = 1 if self._share else len(group.responses)
        return prompts * group.prompt.num_tokens + sum(len(response.token_ids) for response in group.responses)

    def agree(self, groups: Sequence[Group], parts: int, mask: Tensor) -> Agreed:
        """What the processes do together; ``mask`` bool ``[B, T]`` marks the tokens that this one trains on."""
        media = bool(with_media([group.prompt for group in groups], self.model.store))
        every = self.ranks.gather((parts, media, int(mask.sum()), int(mask.any(dim=-1).sum())))
        return Agreed(
            parts=max(parts for parts, _, _, _ in every),
            vision=self.ranks.size > 1 and any(media for _, media, _, _ in every),
            tokens=sum(tokens for _, _, tokens, _ in every),
            sequences=sum(sequences for _, _, _, sequences in every),
        )

    def forward(self, groups: Sequence[Group], vision: bool, share: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """The two outputs of the model and the mask, each ``[B, T]``, for the responses of the groups of one part. Without
        ``share``, in separate rows whatever the settings."""
        packed = pack(groups if self._share and share else separate(groups), self.device)
        first, second = self.model(packed, vision)
        return _placed(first, packed.mask), _placed(second, packed.mask), packed.mask

    def idle(self, vision: bool) -> Tensor:
        """A loss of 0, by the calls of a real one: what a process computes while others still have parts left."""
        first, _ = self.model(pack([self._filler], self.device), vision)
        return 0.0 * first.sum()


def _placed(values: Tensor, mask: Tensor) -> Tensor:
    """``[B, T]`` with the values in the True places of ``mask``, row by row, and 0 elsewhere."""
    return torch.zeros(mask.shape, dtype=values.dtype, device=values.device).masked_scatter(mask, values)
