"""The model that a policy is held near to."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from evr1_core.api import ModelFamily
from evr1_core.config.schema import RunConfig
from evr1_core.train.features import FeatureStore
from evr1_core.train.hybrid import HybridModel
from evr1_core.train.passes import Passes
from evr1_core.train.ranks import ALONE, Ranks
from evr1_core.train.shard import shard


class Reference(Passes):
    """A frozen model; ``rows`` are its log-probabilities. ``store``: vision features that its tower would make, too."""

    def __init__(
        self,
        module: nn.Module,
        family: ModelFamily,
        processor: Any,
        config: RunConfig,
        ranks: Ranks = ALONE,
        store: FeatureStore | None = None,
    ) -> None:
        super().__init__(module, family, processor, config, ranks)
        self.model = HybridModel(module, family, temperature=config.rollout.temperature, banned=self.banned)
        self.model.store = store
        if ranks.size > 1:
            dtype = torch.bfloat16 if config.model.dtype == "bfloat16" else next(module.parameters()).dtype
            shard(self.model, ranks, dtype, cpu_offload=config.sharding.cpu_offload)
        module.requires_grad_(False)
