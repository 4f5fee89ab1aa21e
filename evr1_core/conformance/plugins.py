"""Vectors of advantages and policy losses, answered by algorithm plugins through the interface that training uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import torch
from torch import Tensor

from evr1_core.api import Algorithm, Evr1Error, LossBatch, ScoreBatch
from evr1_core.api.tensors import (
    AGGREGATIONS,
    generalised_advantages,
    last_token,
    outcome,
    place_on_last_token,
    training_loss,
)
from evr1_core.conformance.inputs import Inputs, as_tensor
from evr1_core.registry.loading import build_plugin, load_class, resolve

BUILT_IN = "evr1/"
RENAMED = {"gae": "ppo"}  # ops named by the estimator, whose plugin has another name
LOSS_TYPES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ppo": ("grpo", {}),
    "gspo": ("gspo", {}),
    "gspo_token": ("gspo", {"per_token": True}),
    "cispo": ("cispo", {}),
}
LOSS_OPTIONS = {"low": "clip_low", "high": "clip_high", "dual": "dual_clip", "agg": "aggregation"}
OFF_OPTIONS = ("off_mode", "off_gamma", "off_max", "off_drop_negative")
CREDIT_OPTIONS = ("baseline_rows", "level", "weights", "gamma", "lam")


def advantages(op: str, inputs: Inputs) -> dict[str, Any]:
    """``adv.NAME``: ``adv`` and ``returns`` ``[B, T]`` and ``seq_adv`` ``[B]`` of the plugin NAME."""
    name = op.removeprefix("adv.")
    algorithm = _plugin(inputs, RENAMED.get(name, name), {key: inputs.get(key) for key in CREDIT_OPTIONS if key in inputs})
    mask = inputs.mask()
    result = algorithm.advantages(_score_batch(inputs, mask))
    answer = {"adv": result.values, "returns": result.values if result.returns is None else result.returns}
    if "scores" in inputs:
        answer["seq_adv"] = _by_response(algorithm, inputs, result.values, mask)
    if name == "gae":
        gamma, lam = inputs.get("gamma", 1.0), inputs.get("lam", 1.0)
        answer["raw_adv"], _ = generalised_advantages(
            inputs.tensor("token_rewards"), inputs.tensor("values"), mask, gamma=gamma, lam=lam
        )
    return answer


def _score_batch(inputs: Inputs, mask: Tensor) -> ScoreBatch:
    components = {key: as_tensor(values, f"rewards.{key}") for key, values in inputs.get("rewards", {}).items()}
    rows = len(mask)
    if "token_rewards" in inputs:
        token_rewards = inputs.tensor("token_rewards")
        rewards = outcome(token_rewards, mask)
    else:
        rewards = inputs.tensor("scores") if "scores" in inputs else torch.stack(list(components.values())).sum(dim=0)
        token_rewards = place_on_last_token(rewards, mask)
    return ScoreBatch(
        rewards=rewards,
        components=components,
        group_ids=inputs.groups() if "uid" in inputs else torch.arange(rows),
        offline=inputs.flags("offline", rows),
        judged=torch.ones(rows, dtype=torch.bool),
        mask=mask,
        token_rewards=token_rewards,
        values=inputs.optional("values"),
        greedy_rewards=inputs.optional("baselines"),
    )


def _by_response(algorithm: Algorithm, inputs: Inputs, values: Tensor, mask: Tensor) -> Tensor:
    """``[B]``: the advantage of each response. One without tokens has none to read it from, so it is asked for with one token."""
    empty = ~mask.any(dim=1)
    if empty.any():
        mask = mask.clone()
        mask[empty, 0] = True
        values = torch.where(empty.unsqueeze(1), algorithm.advantages(_score_batch(inputs, mask)).values, values)
    return values.gather(1, last_token(mask).unsqueeze(1)).squeeze(1)


def policy_loss(op: str, inputs: Inputs) -> dict[str, Any]:
    """``loss.policy``: the loss, its gradient, and the shares of clipped tokens."""
    logprobs = inputs.tensor("log_probs").requires_grad_()
    batch = _loss_batch(inputs, logprobs)
    result = training_loss(_loss_plugin(inputs), batch)
    (gradient,) = torch.autograd.grad(result.loss, logprobs)
    shares = {name.removeprefix("actor/"): float(top) / max(float(count), 1.0) for name, (top, count) in result.metrics.items()}
    return {"loss": result.loss, "grad": gradient} | shares


def microbatch(op: str, inputs: Inputs) -> dict[str, Any]:
    """``loss.microbatch``: the losses of parts of a mini-batch, for each way of averaging, and their sum."""
    batch = _loss_batch(inputs, inputs.tensor("log_probs"))
    answer: dict[str, Any] = {
        "denominators": {"tokens": batch.global_tokens, "seqs": batch.global_sequences, "max_len": batch.max_tokens}
    }
    for aggregation in AGGREGATIONS:
        algorithm = _loss_plugin(inputs, agg=aggregation)
        parts = [training_loss(algorithm, _rows(batch, part)).loss for part in inputs.needed("parts")]
        answer[aggregation] = {"parts": parts, "total": torch.stack(parts).sum()}
    return answer


def _loss_batch(inputs: Inputs, logprobs: Tensor) -> LossBatch:
    mask = inputs.mask()
    return LossBatch(
        logprobs=logprobs,
        old_logprobs=inputs.tensor("old_log_probs"),
        advantages=inputs.tensor("adv"),
        mask=mask,
        offline=inputs.flags("offline", len(mask)),
        global_tokens=int(mask.sum()),
        global_sequences=int(mask.any(dim=1).sum()),
        max_tokens=int(inputs.get("max_len", mask.shape[1])),
        weights=inputs.optional("is_weights"),
        behaviour_logprobs=inputs.optional("behaviour_log_probs"),
    )


def _rows(batch: LossBatch, rows: list[int]) -> LossBatch:
    fields: dict[str, Any] = attrs.asdict(batch, recurse=False)
    changed: dict[str, Any] = {key: value[rows] for key, value in fields.items() if isinstance(value, Tensor)}
    return attrs.evolve(batch, **changed)


def _loss_plugin(inputs: Inputs, **more: Any) -> Algorithm:
    loss_type = inputs.get("loss_type", "ppo")
    if loss_type not in LOSS_TYPES:
        raise Evr1Error(f"loss_type {loss_type!r} is not known: {', '.join(LOSS_TYPES)}")
    name, fixed = LOSS_TYPES[loss_type]
    values = {**inputs.values, **more}
    options = {option: values[key] for key, option in LOSS_OPTIONS.items() if key in values}
    if loss_type != "ppo":
        options.pop("dual_clip", None)  # there is none
    return _plugin(inputs, name, {**fixed, **options, **{key: inputs.get(key) for key in OFF_OPTIONS if key in inputs}})


def _plugin(inputs: Inputs, name: str, options: Mapping[str, Any]) -> Algorithm:
    """The plugin that ``--algo`` names, with those of the options that it has; else the built-in one."""
    if inputs.algorithm is None:
        built: Algorithm = build_plugin("algorithms", BUILT_IN + name, options, place="inputs")
        return built
    fields = {field.name for field in attrs.fields(load_class(resolve("algorithms", inputs.algorithm)))}
    own = {key: value for key, value in options.items() if key in fields}
    chosen: Algorithm = build_plugin("algorithms", inputs.algorithm, own, place="inputs")
    return chosen
