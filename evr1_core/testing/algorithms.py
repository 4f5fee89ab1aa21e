"""The contract of algorithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from evr1_core.api import Advantages, Algorithm, LossBatch, LossResult, ScoreBatch

GROUPS, TOKENS = 3, 6
SPLITS = ((12,), (1, 11), (5, 4, 3), (1,) * 12)  # rows of each part; all of a batch of 12


def check_algorithm(algorithm: Algorithm, *, seed: int = 0) -> None:
    """Demands: advantages are finite, 0 outside the mask and follow their rows when these are permuted; the loss is a finite scalar
    with finite gradients, 0 outside the mask, and value and gradient do not depend on how a batch was split, with and without
    rollout correction; weights of 0 leave no gradient to samples."""
    generator = torch.Generator().manual_seed(seed)
    batch = score_batch(algorithm, generator)
    advantages = _checked_advantages(algorithm, batch)
    order = torch.randperm(len(batch.rewards), generator=generator)
    permuted = _checked_advantages(algorithm, rows_of(batch, order))
    torch.testing.assert_close(
        permuted.values, advantages.values[order], msg=lambda text: f"advantages depend on the order: {text}"
    )
    for change in ("equal", "empty", "unjudged"):
        _checked_advantages(algorithm, _variant(batch, change))
    keep = algorithm.keep(batch)
    if keep is not None:
        assert keep.dtype == torch.bool, f"keep gave {keep.dtype}, not bool"
        assert keep.shape == batch.rewards.shape, f"keep gave shape {tuple(keep.shape)}"
    for spread in (0.0, 0.3, 30.0):
        loss_batch = _loss_batch(batch, advantages.values, spread, generator)
        _check_loss(algorithm, loss_batch)
        weights = torch.rand(batch.mask.shape, generator=generator, dtype=torch.float64)
        _check_loss(algorithm, attrs.evolve(loss_batch, weights=torch.where(batch.offline.unsqueeze(1), 1.0, weights)))
    if algorithm.rollouts:
        _check_that_weights_count(algorithm, _loss_batch(batch, advantages.values, 0.3, generator))


def score_batch(algorithm: Algorithm, generator: torch.Generator) -> ScoreBatch:
    """Three groups of four interleaved responses with holes in the mask, and whatever the algorithm needs."""
    group_ids = torch.arange(GROUPS).repeat(4)
    rows = len(group_ids)
    mask = torch.rand(rows, TOKENS, generator=generator) < 0.8
    mask[:, 0] = True
    components = {name: torch.randint(0, 2, (rows,), generator=generator).double() for name in ("accuracy", "format")}
    rewards = 0.9 * components["accuracy"] + 0.1 * components["format"]
    last = torch.where(mask, torch.arange(TOKENS), -1).max(dim=1).values
    token_rewards = torch.zeros(rows, TOKENS, dtype=torch.float64)
    token_rewards[torch.arange(rows), last] = rewards
    offline = torch.zeros(rows, dtype=torch.bool)
    if not algorithm.rollouts:
        offline[:] = True
    elif "offline" in algorithm.needs:
        offline[-GROUPS:] = True
    return ScoreBatch(
        rewards=rewards,
        components=components,
        group_ids=group_ids,
        offline=offline,
        judged=torch.ones(rows, dtype=torch.bool),
        mask=mask,
        token_rewards=token_rewards,
        values=torch.rand(rows, TOKENS, generator=generator, dtype=torch.float64) if "critic" in algorithm.needs else None,
        greedy_rewards=torch.rand(GROUPS, generator=generator, dtype=torch.float64)[group_ids]
        if "greedy_baseline" in algorithm.needs
        else None,
    )


def rows_of(batch: ScoreBatch, rows: Tensor) -> ScoreBatch:
    """The batch with its rows in another order."""
    changed = {name: value[rows] for name, value in attrs.asdict(batch, recurse=False).items() if isinstance(value, Tensor)}
    return attrs.evolve(batch, components={name: value[rows] for name, value in batch.components.items()}, **changed)


def _variant(batch: ScoreBatch, change: str) -> ScoreBatch:
    if change == "equal":
        return attrs.evolve(
            batch,
            rewards=torch.full_like(batch.rewards, 0.7),
            components={name: torch.full_like(value, 0.7) for name, value in batch.components.items()},
            token_rewards=torch.where(batch.token_rewards != 0, 0.7, 0.0).double(),
        )
    hidden = torch.zeros_like(batch.judged)
    hidden[1] = True
    mask = batch.mask & ~hidden.unsqueeze(1)
    token_rewards = batch.token_rewards * mask
    return attrs.evolve(batch, mask=mask, token_rewards=token_rewards, judged=~hidden if change == "unjudged" else batch.judged)


def _checked_advantages(algorithm: Algorithm, batch: ScoreBatch) -> Advantages:
    result = algorithm.advantages(batch)
    for name, values in (("values", result.values), ("returns", result.returns)):
        if values is None:
            assert name != "returns" or "critic" not in algorithm.needs, "it needs a critic and gives no returns"
            continue
        assert values.shape == batch.mask.shape, f"{name}: shape {tuple(values.shape)}, the mask has {tuple(batch.mask.shape)}"
        assert bool(torch.isfinite(values).all()), f"{name} are not finite"
        assert bool((values[~batch.mask] == 0).all()), f"{name} are not 0 outside the mask"
        assert not values.requires_grad, f"{name} carry a gradient"
    return result


def _loss_batch(batch: ScoreBatch, advantages: Tensor, spread: float, generator: torch.Generator) -> LossBatch:
    def noise() -> Tensor:
        return torch.randn(batch.mask.shape, generator=generator, dtype=torch.float64)

    old = -noise().abs()
    return LossBatch(
        logprobs=old + spread * noise(),
        old_logprobs=old,
        advantages=advantages.double(),
        mask=batch.mask,
        offline=batch.offline,
        global_tokens=int(batch.mask.sum()),
        global_sequences=len(batch.rewards),
        max_tokens=TOKENS,
        behaviour_logprobs=old if bool(batch.offline.any()) else None,
    )


def _check_loss(algorithm: Algorithm, batch: LossBatch) -> None:
    whole, gradient = _loss_of_parts(algorithm, batch, SPLITS[0])
    assert bool(torch.isfinite(whole)), f"the loss is {whole}"
    assert bool(torch.isfinite(gradient).all()), "the gradient is not finite"
    assert bool((gradient[~batch.mask] == 0).all()), "tokens outside the mask get a gradient"
    for sizes in SPLITS[1:]:
        loss, split_gradient = _loss_of_parts(algorithm, batch, sizes)
        torch.testing.assert_close(loss, whole, msg=lambda text: f"the loss depends on how the batch is split: {text}")
        torch.testing.assert_close(
            split_gradient, gradient, msg=lambda text: f"the gradient depends on how the batch is split: {text}"
        )


def _check_that_weights_count(algorithm: Algorithm, batch: LossBatch) -> None:
    sampled = ~batch.offline.unsqueeze(1) & batch.mask
    _, gradient = _loss_of_parts(algorithm, attrs.evolve(batch, weights=(~sampled).double()), SPLITS[0])
    assert not bool(gradient[sampled].any()), "the policy loss is not multiplied by LossBatch.weights, the rollout correction"


def _loss_of_parts(algorithm: Algorithm, batch: LossBatch, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    logprobs = batch.logprobs.clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for rows in torch.split(torch.arange(len(batch.offline)), list(sizes)):
        tensors: dict[str, Any] = {
            name: value[rows] for name, value in attrs.asdict(batch, recurse=False).items() if isinstance(value, Tensor)
        }
        tensors["logprobs"] = logprobs[rows]
        result = algorithm.policy_loss(attrs.evolve(batch, **tensors))
        assert isinstance(result, LossResult), f"policy_loss gave a {type(result).__name__}, not a LossResult"
        assert result.loss.shape == (), f"the loss has shape {tuple(result.loss.shape)}; a scalar is asked for"
        total = total + result.loss.double()
    (gradient,) = torch.autograd.grad(total, logprobs)
    return total.detach(), gradient
