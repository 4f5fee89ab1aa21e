"""One process of several that hold a model in shards: every switch that saves memory, against one process with the same switch.

Called with a family, the folder of its tiny checkpoint and a folder to write to. The first process prints a line of JSON a case.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from evr1_core.config.schema import LoraConfig, ModelConfig, RolloutConfig, RunConfig, ShardingConfig, TrainConfig
from evr1_core.registry.loading import load_class, resolve
from evr1_core.train.policy import Policy
from evr1_core.train.ranks import join, leave
from evr1_core.train.shard import whole
from evr1_plugins.algorithms.grpo import GRPO
from tests.core.train.hybrid_worker import credited, group, largest

CASES = {
    "plain": {},
    "checkpointing": {"train": {"gradient_checkpointing": True}},
    "offload": {"sharding": ShardingConfig(cpu_offload=True)},
    "bfloat16": {"dtype": "bfloat16"},
    "lora": {"lora": LoraConfig(rank=4)},
    "all": {
        "train": {"gradient_checkpointing": True, "freeze_vision": True},
        "sharding": ShardingConfig(cpu_offload=True),
        "dtype": "bfloat16",
        "lora": LoraConfig(rank=4),
    },
}
SHARES = (("mixed", "text"), ("video",), ("text",))


def main(name: str, folder: str, output: str) -> None:
    from transformers import AutoProcessor

    torch.set_num_threads(1)
    ranks = join(minutes=1)
    family = load_class(resolve("models", name))()
    processor = AutoProcessor.from_pretrained(folder)
    shares = [[group(family, processor, kind) for kind in kinds] for kinds in SHARES[: ranks.size]]
    for case, switches in CASES.items():
        config = RunConfig(
            model=ModelConfig(path=folder, dtype=switches.get("dtype", "float32")),
            train=TrainConfig(groups_per_batch=1, lr=1e-3, max_grad_norm=0.5, **switches.get("train", {})),
            rollout=RolloutConfig(temperature=0.8),
            lora=switches.get("lora", LoraConfig()),
            sharding=switches.get("sharding", ShardingConfig()),
        )
        shards = Policy(family.load(folder), family, processor, config, total_updates=5, ranks=ranks)
        alone = Policy(family.load(folder), family, processor, config, total_updates=5)
        first = sum(map(len, shares[: ranks.rank]))
        shards.backward(GRPO(), credited(shares[ranks.rank], first))
        alone.backward(GRPO(), credited([each for share in shares for each in share], 0))
        theirs = [None if each.grad is None else whole(each.grad) for each in shards.optimizer._parameters]
        ours = [None if each.grad is None else each.grad.clone() for each in alone.optimizer._parameters]
        metrics, expected = shards.optimizer.step(), alone.optimizer.step()
        weights, known = dict(shards.weights()), dict(alone.weights())
        shards.save(Path(output) / case)
        logprobs = shards.logprobs(shares[ranks.rank])
        row = {
            "case": case,
            "gradient": largest(ours, theirs) / largest(ours, [None] * len(ours)),
            "types": sorted({str(each.dtype) for each in theirs if each is not None}),
            "norm": abs(metrics["actor/grad_norm"] / expected["actor/grad_norm"] - 1),
            "names": list(weights) == list(known),
            "weights": float(torch.stack([(weights[key] - known[key]).abs().max() for key in known]).max()),
            "logprobs": float((logprobs - alone.logprobs(shares[ranks.rank])).abs().max()),
            "devices": sorted({each.device.type for each in shards.optimizer._parameters}),
        }
        if ranks.leads:
            print(json.dumps(row), flush=True)
    leave(ranks)


if __name__ == "__main__":
    main(*sys.argv[1:])
