"""Vectors of single functions: KL, entropy, correction, filters, offline rows, balancing, schedules, counts of operations."""

from __future__ import annotations

from typing import Any

import torch

from evr1_core.api.filters import DynamicFilter, keeps, pass_at_k, pass_rate
from evr1_core.api.tensors import (
    KL_KINDS,
    KLController,
    exact_entropy,
    explained_variance,
    full_kl,
    kl_kind_of,
    reward_with_kl,
    rollout_weights,
    token_kl,
    value_loss,
)
from evr1_core.conformance.inputs import Inputs
from evr1_core.rollout.collect import mix_plan
from evr1_core.rollout.groups import offline_row
from evr1_core.rollout.scoring import overlong
from evr1_core.train.balance import partition
from evr1_core.train.flops import DecoderShape, step_flops, utilisation
from evr1_core.train.optim import lr_factor


def value(inputs: Inputs) -> dict[str, Any]:
    new = inputs.tensor("vpreds").requires_grad_()
    mask = inputs.tensor("mask") != 0 if "mask" in inputs else torch.ones_like(new, dtype=torch.bool)
    flat = [each.reshape(1, -1) for each in (new, inputs.tensor("values"), inputs.tensor("returns"), mask)]
    result = value_loss(*flat, clip=inputs.get("clip", 0.5), tokens=int(mask.sum()))
    (gradient,) = torch.autograd.grad(result.loss, new)
    top, count = result.metrics["critic/vf_clipfrac"]
    return {"loss": result.loss, "grad": gradient, "vf_clipfrac": float(top) / max(float(count), 1.0)}


def kl_token(inputs: Inputs) -> dict[str, Any]:
    reference, old = inputs.tensor("ref_log_probs"), inputs.optional("old_log_probs")
    answer: dict[str, Any] = {"grad": {}}
    for kind in KL_KINDS:
        logprobs = inputs.tensor("log_probs").requires_grad_()
        answer[kind] = token_kl(logprobs, reference, kind, old)
        (answer["grad"][kind],) = torch.autograd.grad(answer[kind].sum(), logprobs)
    return answer


def kl_full(inputs: Inputs) -> dict[str, Any]:
    logits = inputs.tensor("logits").requires_grad_()
    kl = full_kl(logits, inputs.tensor("ref_logits"))
    (gradient,) = torch.autograd.grad(kl.sum(), logits)
    return {"kl": kl, "grad_logits": gradient}


def entropy(inputs: Inputs) -> dict[str, Any]:
    scaled = (inputs.tensor("logits") / inputs.get("temperature", 1.0)).requires_grad_()
    result = exact_entropy(scaled)
    (gradient,) = torch.autograd.grad(result.sum(), scaled)
    return {"entropy": result, "grad_scaled_logits": gradient}


def reward_kl(inputs: Inputs) -> dict[str, Any]:
    """``controller``: ``target``, ``horizon``, ``n_seq``, and the ``kl`` of one batch or several; ``betas`` after each."""
    answer: dict[str, Any] = {}
    beta = inputs.needed("beta")
    if "token_scores" in inputs:
        kind = kl_kind_of("reward", inputs.get("kind", "auto"))
        answer["token_rewards"], answer["current_kl"] = reward_with_kl(
            inputs.tensor("token_scores"),
            inputs.tensor("old_log_probs"),
            inputs.tensor("ref_log_probs"),
            inputs.mask(),
            coef=beta,
            kind=kind,
        )
    if "controller" in inputs:
        given = Inputs(inputs.needed("controller"))
        kls = given.get("kl", given.get("kls", float(answer["current_kl"]) if answer else None))
        answer["betas"] = _betas(beta, kls if isinstance(kls, list) else [kls], given)
    return answer


def _betas(beta: float, kls: list[float], given: Inputs) -> list[float]:
    fixed = given.get("type", given.get("kind", "adaptive")) == "fixed"
    controller = KLController(coef=beta, target=None if fixed else given.get("target", 0.1), horizon=given.get("horizon", 10_000))
    betas = []
    for kl in kls:
        controller.update(kl, given.get("n_seq", given.get("n", 1)))
        betas.append(controller.coef)
    return betas


def reward_overlong(inputs: Inputs) -> dict[str, Any]:
    limit, cache, factor = inputs.needed("max_len"), inputs.needed("cache"), inputs.get("factor", 1.0)
    return {"penalty": [factor * overlong(length, limit, cache) for length in inputs.needed("lengths")]}


def correction(inputs: Inputs) -> dict[str, Any]:
    weights, metrics = rollout_weights(
        inputs.tensor("old_log_probs"),
        inputs.tensor("rollout_log_probs"),
        inputs.mask(),
        level=inputs.get("level", "token"),
        mode=inputs.get("mode", "truncate"),
        high=inputs.get("hi", 2.0),
        low=inputs.get("lo"),
    )
    return {"weights": weights} | {name.removeprefix("rollout_corr/"): each for name, each in metrics.items()}


def dynamic(inputs: Inputs) -> dict[str, Any]:
    collected = DynamicFilter[str](target=inputs.needed("target"), max_tries=inputs.get("max_tries", 20))
    for batch in inputs.needed("gen_batches"):
        if collected.done:
            break
        collected.add([(uid, values) for uid, values in batch])
    return {
        "kept": collected.kept,
        "num_tries": collected.tries,
        "num_seen": collected.seen,
        "num_surplus": collected.surplus,
        "complete": collected.complete,
    }


def difficulty(inputs: Inputs) -> dict[str, Any]:
    accuracies, threshold = inputs.needed("acc"), inputs.get("threshold", 0.5)
    several = isinstance(accuracies[0], list)
    rates = [pass_rate(each, threshold) for each in (accuracies if several else [accuracies])]
    kept = [keeps(rate, inputs.get("low", 0.0), inputs.get("high", 1.0)) for rate in rates]
    return {"pass_rate": rates if several else rates[0], "keep": kept if several else kept[0]}


def best_of_k(inputs: Inputs) -> dict[str, Any]:
    cases = inputs.needed("cases")
    return {"value": [pass_at_k(*case) for case in cases] if isinstance(cases[0], list) else pass_at_k(*cases)}


def plan(inputs: Inputs) -> dict[str, Any]:
    has = inputs.needed("has_offline")
    replace = mix_plan(
        inputs.needed("online_acc"),
        has,
        trigger_below=inputs.get("trigger_below"),
        offline_score=inputs.get("offline_score", [None] * len(has)),
        min_offline=inputs.get("min_offline"),
    )
    return {"replace": replace}


def stored_row(inputs: Inputs) -> dict[str, Any]:
    eos, pad, limit = inputs.needed("eos_ids"), inputs.needed("pad_id"), inputs.needed("max_len")

    def row(ids: list[int]) -> dict[str, Any]:
        kept, truncated = offline_row(ids, eos, limit)
        unused = ids[len(kept) : limit]  # what stands behind the end token is not kept in training
        padding = [pad] * (limit - len(kept) - len(unused))
        return {"ids": kept + unused + padding, "mask": [1] * len(kept) + [0] * (limit - len(kept)), "truncated": truncated}

    given = inputs.needed("token_ids")
    return {name: row(ids) for name, ids in given.items()} if isinstance(given, dict) else row(given)


def balance(inputs: Inputs) -> dict[str, Any]:
    lengths = inputs.needed("seqlens")
    parts = partition(lengths, inputs.needed("k"), equal_size=inputs.get("equal_size", False))
    largest = max(sum(lengths[index] for index in part) for part in parts)
    return {"parts": parts, "part_sizes": [len(part) for part in parts], "max_sum": largest}


def schedule(inputs: Inputs) -> dict[str, Any]:
    total = inputs.needed("total")
    options = {
        "warmup": inputs.get("warmup", 0),
        "total": total,
        "min_ratio": inputs.get("min_ratio", 0.0),
        "stable_ratio": inputs.get("stable_ratio", 0.9),
    }
    return {"factor": [lr_factor(inputs.needed("kind"), update, **options) for update in range(1, total + 1)]}


def explained(inputs: Inputs) -> dict[str, Any]:
    returns = inputs.tensor("returns")
    mask = inputs.tensor("mask") != 0 if "mask" in inputs else torch.ones_like(returns, dtype=torch.bool)
    return {"value": explained_variance(returns, inputs.tensor("values"), mask)}


def mfu(inputs: Inputs) -> dict[str, Any]:
    lengths, seconds, devices = inputs.needed("seqlens"), inputs.needed("seconds"), inputs.needed("n_gpus")
    flops = step_flops(DecoderShape(**inputs.needed("config")), lengths)
    return {
        "linear_flops": flops.linear,
        "attention_flops": flops.attention,
        "mfu": utilisation(flops.total, seconds, devices, inputs.needed("peak_tflops")),
        "throughput": sum(lengths) / (seconds * devices),
    }


FUNCTIONS = {
    "loss.value": value,
    "kl.token": kl_token,
    "kl.full": kl_full,
    "entropy": entropy,
    "reward.kl": reward_kl,
    "reward.overlong": reward_overlong,
    "corr.rollout_weights": correction,
    "filter.dynamic": dynamic,
    "filter.difficulty": difficulty,
    "metric.pass_at_k": best_of_k,
    "mix.plan": plan,
    "mix.offline_row": stored_row,
    "balance.partition": balance,
    "sched.lr": schedule,
    "metric.explained_var": explained,
    "metric.mfu": mfu,
}
