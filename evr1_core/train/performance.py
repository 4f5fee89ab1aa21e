"""Tokens a second, memory, and the share of a device's peak that a step reaches."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Any

import torch

from evr1_core.rollout.groups import Group
from evr1_core.train.flops import DecoderShape, peak_of, step_flops, utilisation
from evr1_core.train.policy import Policy

GB = 1024**3


def performance(groups: Sequence[Group], seconds: dict[str, float], policy: Policy, epochs: int) -> dict[str, float]:
    """Metrics under ``perf/`` and ``timing_per_token_ms/``. A prompt counts for each of its responses, as if it were not shared, so
    that runs with and without sharing compare."""
    responses = [(group.prompt.num_tokens, len(response.token_ids)) for group in groups for response in group.responses]
    response_tokens = sum(own for _, own in responses)
    lengths = [prompt + own for prompt, own in responses]
    tokens = sum(lengths)
    metrics = {
        "perf/total_num_tokens": float(tokens),
        "perf/time_per_step": seconds["timing_s/step"],
        "perf/throughput": tokens / (seconds["timing_s/step"] * policy.ranks.size),
        "perf/cpu_memory_used_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GB,
    }
    counts = {"gen": response_tokens, "reward": response_tokens} | dict.fromkeys(
        ("old_log_prob", "ref", "values", "adv", "update_critic", "update_actor"), tokens
    )
    for phase, count in counts.items():
        if f"timing_s/{phase}" in seconds and count:
            metrics[f"timing_per_token_ms/{phase}"] = 1000 * seconds[f"timing_s/{phase}"] / count
    return metrics | _device(lengths, seconds, policy, epochs)


def _device(lengths: Sequence[int], seconds: dict[str, float], policy: Policy, epochs: int) -> dict[str, float]:
    """Memory of a GPU, and the utilisation of one whose peak is known."""
    if policy.device.type != "cuda":
        return {}
    metrics = {
        "perf/max_memory_allocated_gb": torch.cuda.max_memory_allocated(policy.device) / GB,
        "perf/max_memory_reserved_gb": torch.cuda.max_memory_reserved(policy.device) / GB,
    }
    peak = peak_of(torch.cuda.get_device_name(policy.device))
    if peak is None:
        return metrics
    flops = step_flops(shape_of(policy.module), lengths).total
    for name, phase, work in (("actor", "update_actor", flops * epochs), ("actor_infer", "old_log_prob", flops / 3)):
        if f"timing_s/{phase}" in seconds:
            metrics[f"perf/mfu/{name}"] = utilisation(work, seconds[f"timing_s/{phase}"], policy.ranks.size, peak)
    return metrics


def shape_of(module: Any) -> DecoderShape:
    """Sizes of the text part of a Transformers model."""
    text = module.config.get_text_config()
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return DecoderShape(
        hidden=text.hidden_size,
        inter=text.intermediate_size,
        layers=text.num_hidden_layers,
        heads=text.num_attention_heads,
        kv_heads=text.num_key_value_heads,
        head_dim=head_dim,
        vocab=text.vocab_size,
    )
