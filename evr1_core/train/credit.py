"""From scored groups to what an algorithm takes, and the metrics of both."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from evr1_core.api import ScoreBatch
from evr1_core.api.filters import DynamicFilter
from evr1_core.api.tensors import SPREAD, outcome, place_on_last_token
from evr1_core.rollout.groups import Group
from evr1_core.rollout.scoring import Scored
from evr1_core.train.metrics import spread
from evr1_core.train.prefix import response_mask


def score_batch(groups: Sequence[Group], scores: Sequence[Sequence[Scored]]) -> ScoreBatch:
    """The scores of all responses as tensors, a row a response; rewards are float64, since statistics of groups are done in it."""
    rows = [score for group in scores for score in group]
    responses = [response for group in groups for response in group.responses]
    rewards = torch.tensor([score.total for score in rows], dtype=torch.float64)
    judged = torch.tensor([score.judged for score in rows])
    mask = response_mask(responses) & judged.unsqueeze(1)
    names = {name for score in rows for name in score.components}
    return ScoreBatch(
        rewards=rewards,
        components={
            name: torch.tensor([score.components.get(name, float("nan")) for score in rows], dtype=torch.float64) for name in names
        },
        group_ids=torch.tensor([number for number, group in enumerate(groups) for _ in group.responses]),
        offline=torch.tensor([response.offline for response in responses]),
        judged=judged,
        mask=mask,
        token_rewards=place_on_last_token(rewards, mask),
    )


def score_metrics(batch: ScoreBatch) -> dict[str, float]:
    """Metrics of the scores; stored trajectories are left out and reported under ``mix_policy``."""
    own = batch.judged & ~batch.offline
    metrics = spread("critic/score", batch.rewards[own]) | spread("critic/rewards", outcome(batch.token_rewards, batch.mask)[own])
    for name, values in batch.components.items():
        here = own & ~values.isnan()
        if here.any():
            metrics[f"reward/{name}"] = float(values[here].mean())
    if batch.offline.any():
        metrics["mix_policy/off_score"] = float(batch.rewards[batch.offline].mean())
    return metrics


def group_metrics(scores: Sequence[Sequence[Scored]]) -> dict[str, float]:
    """What share of the groups has no spread, is all right, or all wrong: of all that were sampled, before any is filtered out."""
    flat = correct = wrong = singles = 0
    for group in scores:
        judged = [score for score in group if score.judged]
        totals = [score.total for score in judged]
        right = [score.accuracy or 0.0 for score in judged]
        singles += len(judged) == 1
        flat += not totals or max(totals) - min(totals) <= SPREAD
        correct += bool(right) and min(right) >= 1 - SPREAD
        wrong += bool(right) and max(right) <= SPREAD
    return {
        "group/zero_std_frac": flat / len(scores),
        "group/all_correct_frac": correct / len(scores),
        "group/all_wrong_frac": wrong / len(scores),
        "critic/singleton_groups": float(singles),
    }


def filter_metrics(search: DynamicFilter[int]) -> dict[str, float]:
    """How dynamic sampling came to its groups."""
    return {
        "filter/tries": float(search.tries),
        "filter/seen": float(search.seen),
        "filter/kept": float(len(search.kept)),
        "filter/surplus": float(search.surplus),
        "filter/exhausted": float(not search.complete),
    }


def sampled_logprobs(groups: Sequence[Group]) -> Tensor | None:
    """float32 ``[B, T]``: the engine's log-probabilities, 0 on padding and on rows without; None when no row has any."""
    rows = [response.logprobs or () for group in groups for response in group.responses]
    return _in_rows(rows, groups) if any(rows) else None


def recorded_logprobs(groups: Sequence[Group]) -> Tensor | None:
    """float32 ``[B, T]``: those recorded with stored trajectories, 0 elsewhere; None when there is none, or one lacks them."""
    stored = [response for group in groups for response in group.responses if response.offline]
    if not stored or any(response.recorded is None for response in stored):
        return None
    return _in_rows([response.recorded or () for group in groups for response in group.responses], groups)


def _in_rows(rows: Sequence[Sequence[float]], groups: Sequence[Group]) -> Tensor:
    width = max(len(response.token_ids) for group in groups for response in group.responses)
    return torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows])


def length_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Lengths in tokens; ``clip_ratio`` is the share of sampled responses that hit the limit without an end token."""
    own = [response for group in groups for response in group.responses if not response.offline]
    lengths = torch.tensor([len(response.token_ids) for response in own])
    prompts = torch.tensor([group.prompt.num_tokens for group in groups])
    metrics = spread("response_length", lengths) | spread("prompt_length", prompts)
    if own:
        metrics["response_length/clip_ratio"] = sum(response.truncated for response in own) / len(own)
        metrics["response/aborted_ratio"] = float((lengths == 0).double().mean())
    return metrics


def advantage_metrics(advantages: Tensor, mask: Tensor) -> dict[str, float]:
    """Spread of the advantages over valid tokens."""
    return spread("critic/advantages", advantages[mask])
