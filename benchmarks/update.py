"""How fast a group is trained on, and what log-probs under a large vocabulary cost.

    python benchmarks/update.py [--runs 3] [--only prefix head] [--families qwen3_vl ...]

Prints JSON; both sides run in turns, with the same weights and data, one thread; seconds are medians. `prefix`: one prompt of 1,024
tokens with a video and 8 responses, a model of 6 layers of width 512 with random weights: forward and backward of the training
loss with the prompt computed once, against a copy of it in each row, and how far log-probs and gradients are apart. `head`:
log-probs and entropies of 4,096 tokens under a head of 151,936 rows and width 1,024, in parts, against all logits at once: seconds,
and the growth of the process's peak memory, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rollout import FAMILIES, LENGTH, RESPONSES, loaded, noise, of_length, timed, visual_tokens
from torch import nn

from evr1_core.config.schema import RunConfig, TrainConfig
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.groups import Group, Response
from evr1_core.train.logprobs import CHUNK, token_logprobs
from evr1_core.train.policy import Credited, Policy

TOKENS, VOCABULARY, WIDTH = 4096, 151_936, 1024


def prefix(name: str, folder: Path, runs: int) -> dict[str, Any]:
    """Both ways to train on a group, for responses of 64 and of 128 tokens."""
    family, processor, module = loaded(name, folder, width=512, layers=6)
    prompt = of_length(family, processor, (noise(family, 16, 4),), LENGTH)
    policies = {}
    for way, share in (("shared", True), ("separate", False)):
        config = RunConfig(train=TrainConfig(share_prefix=share, groups_per_batch=1))
        policies[way] = Policy(module, family, processor, config, total_updates=1)
    algorithm = build_plugin("algorithms", "grpo", {}, place="benchmark")
    allowed = [token for token in range(100) if token not in policies["shared"].banned]
    out: dict[str, Any] = {"prompt_tokens": prompt.num_tokens, "visual_tokens": visual_tokens(prompt.encoded)}
    for new in (64, 128):
        ids = torch.tensor(allowed)[torch.randint(0, len(allowed), (RESPONSES, new))].tolist()
        group = Group(prompt=prompt, responses=[Response(text="", token_ids=tuple(row), truncated=False) for row in ids])
        advantages = torch.linspace(-1, 1, RESPONSES).unsqueeze(1).expand(-1, new)
        work = Credited(groups=[group], advantages=advantages, trained=torch.ones(RESPONSES, dtype=torch.bool))
        seconds: dict[str, list[float]] = {way: [] for way in policies}
        gradients, logprobs = {}, {}
        for turn in range(runs + 1):
            for way, policy in policies.items():
                module.zero_grad()
                taken = timed(lambda policy=policy, work=work: policy.backward(algorithm, work))
                if turn:
                    seconds[way].append(taken)
                gradients[way] = [each.grad.clone() for each in module.parameters() if each.grad is not None]
        for way, policy in policies.items():
            logprobs[way] = policy.logprobs([group])
        scale = max(float(each.abs().max()) for each in gradients["separate"])
        apart = max(float((a - b).abs().max()) for a, b in zip(gradients["shared"], gradients["separate"], strict=True))
        medians = {way: statistics.median(each) for way, each in seconds.items()}
        out[f"{new}_tokens"] = {
            "seconds": {way: round(each, 3) for way, each in medians.items()},
            "times_faster": round(medians["separate"] / medians["shared"], 2),
            "logprobs_apart": float(f"{(logprobs['shared'] - logprobs['separate']).abs().max():.2e}"),
            "gradients_apart": float(f"{apart / scale:.2e}"),
        }
    return out


def head(runs: int) -> dict[str, Any]:
    """Both ways to come to log-probs, each in a process of its own."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(runs):
        for way in ("parts", "all"):
            output = subprocess.run([sys.executable, __file__, "--head", way], capture_output=True, text=True, check=True).stdout
            for key, value in json.loads(output).items():
                found.setdefault(way, {}).setdefault(key, []).append(value)
    medians = {way: {key: round(statistics.median(each), 3) for key, each in own.items()} for way, own in found.items()}
    ours, theirs = medians["parts"], medians["all"]
    return medians | {"ratios": {key: round(ours[key] / theirs[key], 3) for key in ours}}


def head_once(way: str) -> dict[str, float]:
    """One process's figures: seconds and extra peak memory in GB."""
    layer = nn.Linear(WIDTH, VOCABULARY, bias=False)
    hidden = torch.randn(TOKENS, WIDTH, requires_grad=True)
    targets = torch.randint(0, VOCABULARY, (TOKENS,))
    chunk = CHUNK if way == "parts" else TOKENS * VOCABULARY

    def work(backward: bool) -> None:
        with torch.set_grad_enabled(backward):
            chosen, entropy = token_logprobs(hidden, layer, targets, temperature=0.9, banned=[7], chunk=chunk)
            if backward:
                (chosen.mean() + 0.01 * entropy.mean()).backward()

    with torch.no_grad():
        layer(hidden[:64])  # warm
    before = peak()
    without = timed(lambda: work(False))
    both = timed(lambda: work(True))
    return {"forward_s": without, "forward_backward_s": both, "extra_gb": peak() - before}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=["prefix", "head"], default=["prefix", "head"])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--head", choices=["parts", "all"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if args.head:
        print(json.dumps(head_once(args.head)))
        return
    out: dict[str, Any] = {}
    start = time.perf_counter()
    if "prefix" in args.only:
        with tempfile.TemporaryDirectory() as folder:
            for name in args.families:
                out.setdefault("prefix", {})[name] = prefix(name, Path(folder) / name, args.runs)
                print(f"prefix {name}: {json.dumps(out['prefix'][name])}", file=sys.stderr, flush=True)
    if "head" in args.only:
        out["head"] = head(args.runs)
    print(json.dumps(out | {"seconds": round(time.perf_counter() - start)}, indent=2))


if __name__ == "__main__":
    main()
