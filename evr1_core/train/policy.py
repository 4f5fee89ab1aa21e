"""The policy of this process: log-probabilities of groups, and optimiser updates on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from torch import Tensor, nn

from evr1_core.api import Algorithm, LossBatch, ModelFamily
from evr1_core.api.tensors import kl_kind_of, training_loss
from evr1_core.config.schema import RunConfig
from evr1_core.rollout.groups import Group
from evr1_core.train.adapters import FOLDER, adapter_state, add_adapters, merged_parameters, save_adapters
from evr1_core.train.features import FeatureStore, is_frozen
from evr1_core.train.hybrid import HybridModel
from evr1_core.train.memory import checkpoint_activations
from evr1_core.train.metrics import Sums
from evr1_core.train.mismatch import Mismatch
from evr1_core.train.optim import Optimizer
from evr1_core.train.passes import Agreed, Part, Passes
from evr1_core.train.prefix import response_mask
from evr1_core.train.ranks import ALONE, Ranks
from evr1_core.train.selfcheck import Looked, distance, excerpt, refuse_unequal, weighed
from evr1_core.train.shard import is_sharded


@frozen(kw_only=True, eq=False)
class Credited:
    """Groups of one update with what their responses are worth.

    ``advantages`` and all log-probs ``[B, T]``, ``trained`` bool ``[B]``: rows follow the responses of the groups in order.
    ``old_logprobs`` None: the update is the only one on its samples, so that they are the policy's own. ``sampled_logprobs``: the
    engine's, with which the rollout correction compares; None: no correction. ``reference_logprobs``: where KL is in the loss.
    ``recorded_logprobs``: those stored with all trajectories, if they are.
    """

    groups: Sequence[Group]
    advantages: Tensor
    trained: Tensor
    old_logprobs: Tensor | None = None
    sampled_logprobs: Tensor | None = None
    reference_logprobs: Tensor | None = None
    recorded_logprobs: Tensor | None = None


class Policy(Passes):
    """The model under training."""

    def __init__(
        self, module: nn.Module, family: ModelFamily, processor: Any, config: RunConfig, total_updates: int, ranks: Ranks = ALONE
    ) -> None:
        super().__init__(module, family, processor, config, ranks)
        self._max_tokens = config.rollout.max_response_tokens
        self._correction = config.correction
        self._entropy_coef = config.train.entropy_coef
        self._kl_kind = kl_kind_of("loss", config.kl.kind) if config.kl.place == "loss" else None
        self._dtype = torch.bfloat16 if config.model.dtype == "bfloat16" else None
        if config.train.freeze_vision:
            freeze_vision(module)
        lora = config.lora
        self._adapters = add_adapters(module, lora, base=config.model.path, seed=config.train.seed) if lora.enabled else None
        if config.train.gradient_checkpointing:
            checkpoint_activations(module)
        self.model = HybridModel(module, family, temperature=config.rollout.temperature, banned=self.banned)
        self.model.store = FeatureStore() if is_frozen(module) else None
        self.optimizer = Optimizer(self.model, config.train, total_updates, self.place(config))
        self._unchecked = self._share

    def logprobs(self, groups: Sequence[Group]) -> Tensor:
        """float32 ``[B, T]`` without gradient, in the order of the groups' responses; 0 on padding."""
        return self.rows(groups)

    def update(self, algorithm: Algorithm, work: Credited, kl_coef: float = 0.0) -> dict[str, float]:
        """One optimiser step on the groups. Returns metrics; loss terms are those of the whole mini-batch, however it was split.

        Before the first one, raises ModelError when prompts computed once say something else than separate rows."""
        if self._unchecked:
            self.check_sharing(work.groups)
            self._unchecked = False
        return self.backward(algorithm, work, kl_coef) | self.optimizer.step()

    def backward(self, algorithm: Algorithm, work: Credited, kl_coef: float = 0.0) -> dict[str, float]:
        """Adds the gradients of the groups of all processes, and returns the metrics of their loss."""
        self.module.train()
        sums, mismatch = Sums(), Mismatch(self._correction)
        parts = self.parts(work.groups)
        agreed = self.agree(work.groups, len(parts), _padded_mask(work))
        for part in parts:
            batch = self._batch(work, part, agreed, mismatch)
            result = training_loss(algorithm, batch, kl_kind=self._kl_kind, kl_coef=kl_coef, entropy_coef=self._entropy_coef)
            result.loss.backward()
            sums.take(result)
            theirs = batch.mask & batch.offline.unsqueeze(1)
            sums.ratio("mix_policy/off_prob", (batch.logprobs.detach().exp() * theirs).sum(), theirs.sum())
        for _ in range(agreed.parts - len(parts)):
            self.idle(agreed.vision).backward()
        return sums.means(self.ranks) | mismatch.metrics(self.ranks)

    def check_sharing(self, groups: Sequence[Group]) -> None:
        """Raises ModelError when a few responses of the groups have other log-probs or gradients than in separate rows. No gradient
        is left. With several processes, all have to call it."""
        self.module.train()
        own = excerpt(groups)
        agreed = self.agree(own, 1, torch.zeros(0, 0, dtype=torch.bool))
        shared, separate = (self._looked(own, agreed, share) for share in (True, False))
        every = self.ranks.gather((distance(shared, separate), [group.prompt.sample.uid for group in own]))
        uids = [uid for _, each in every for uid in each]
        refuse_unequal([apart for apart, _ in every], self._dtype or next(self.module.parameters()).dtype, uids)

    def _looked(self, groups: Sequence[Group], agreed: Agreed, share: bool) -> Looked:
        if groups:
            logprobs, _, mask = self.forward(groups, agreed.vision, share)
            weighed(logprobs).backward()
            seen = logprobs.detach()[mask]
        else:
            self.idle(agreed.vision).backward()
            seen = torch.zeros(0)
        return Looked(logprobs=seen, norm=self.optimizer.discard())

    def forget(self) -> None:
        """Lets go of the vision features of the step's prompts."""
        if self.model.store is not None:
            self.model.store.clear()

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
        if self._dtype:  # Transformers has noted the type that a sharded model's weights are kept in
            module.config.dtype = self._dtype
            module.config.save_pretrained(folder)
        self.processor.save_pretrained(folder)
        if adapters is not None:
            save_adapters(self._adapters, adapters, folder / FOLDER)

    def _batch(self, work: Credited, part: Part, agreed: Agreed, mismatch: Mismatch) -> LossBatch:
        """What the loss of a part takes; notes how far sampler and trainer are apart."""
        logprobs, entropy, mask = self.forward(part.groups, agreed.vision)
        width, rows, device = mask.shape[1], part.rows, mask.device

        def of(values: Tensor) -> Tensor:
            return values[rows.to(values.device), :width].to(device)

        def maybe(values: Tensor | None) -> Tensor | None:
            return None if values is None else of(values)

        responses = [response for group in part.groups for response in group.responses]
        offline = torch.tensor([response.offline for response in responses], device=device)
        old = logprobs.detach() if work.old_logprobs is None else of(work.old_logprobs)
        weights = None
        if work.sampled_logprobs is not None:
            counted = torch.tensor([response.logprobs is not None for response in responses], device=device)
            weights, old = mismatch.corrected(old, of(work.sampled_logprobs), mask, counted)
        return LossBatch(
            logprobs=logprobs,
            old_logprobs=old,
            advantages=of(work.advantages),
            mask=mask & work.trained[rows].to(device).unsqueeze(1),
            offline=offline,
            global_tokens=agreed.tokens,
            global_sequences=agreed.sequences,
            max_tokens=self._max_tokens,
            weights=weights,
            behaviour_logprobs=maybe(work.recorded_logprobs),
            reference_logprobs=maybe(work.reference_logprobs),
            entropy=entropy if self._entropy_coef else entropy.detach(),
        )


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
