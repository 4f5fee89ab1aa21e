"""Whether trainer and vLLM keep their memory over many steps, each with new prompts, an update and all weights sent.

    python benchmarks/rollout_memory.py [--steps 300] [--family qwen3_vl]

Prints JSON: resident megabytes of the trainer and of all of vLLM's processes together, as medians of ten steps behind the first
fifth and at the end, and how much they have grown between. A tiny model; every step has four prompts with a new video each, four
responses of at most 32 tokens, and one optimiser update. Needs vLLM (`make setup-vllm`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from rollout import encoded_prompt, noise, placed

from evr1_core.api import Clip, Request, Sampling
from evr1_core.config.schema import RolloutConfig, RunConfig, TrainConfig
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.groups import Group, sampled
from evr1_core.train.credit import sampled_logprobs
from evr1_core.train.policy import Credited, Policy
from evr1_core.train.session import load_processor

PROMPTS, RESPONSES, NEW, AVERAGED = 4, 4, 32, 10


def resident(leader: int) -> int:
    """Kilobytes of all processes of a session, of this one alone for its own id. Pages of files, such as program code, do not
    count: the kernel drops and reads them again as it likes."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            own = int(folder.name) == leader if leader == os.getpid() else os.getsid(int(folder.name)) == leader
            if own:
                lines = (folder / "status").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return total


class Run:
    """A policy under training and a vLLM that samples from it."""

    def __init__(self, name: str, folder: Path) -> None:
        family = build_plugin("models", name, {}, place="benchmark")
        family.tiny(folder, seed=0)
        self.family, self.processor = placed(family), load_processor(str(folder))
        config = RunConfig(rollout=RolloutConfig(max_response_tokens=NEW), train=TrainConfig(lr=1e-4))
        self.policy = Policy(family.load(str(folder)), self.family, self.processor, config, total_updates=10**6)
        # The memory for keys and values becomes resident where it is first used: so little that this is over after a fifth.
        options = {"enforce_eager": True, "max_model_len": 2048, "cache_gb": 0.03}
        self.engine = build_plugin("engines", "vllm", options, place="benchmark")
        self.algorithm = build_plugin("algorithms", "grpo", {}, place="benchmark")

    async def step(self, number: int) -> None:
        """Prompts, responses, an update with made-up advantages, weights."""
        prompts = [
            encoded_prompt(self.family, self.processor, (self.film(number * PROMPTS + place),), f"What is {number} {place}?")
            for place in range(PROMPTS)
        ]
        sampling = Sampling(n=RESPONSES, max_tokens=NEW, seed=number)
        requests = [Request(uid=prompt.sample.uid, text=prompt.text, clips=prompt.clips, sampling=sampling) for prompt in prompts]
        drawn = await self.engine.generate(requests)
        groups = [Group(prompt=prompt, responses=[sampled(one) for one in own]) for prompt, own in zip(prompts, drawn, strict=True)]
        logprobs = sampled_logprobs(groups)
        assert logprobs is not None
        advantages = torch.randn(len(logprobs), 1).expand_as(logprobs).contiguous()
        trained = torch.ones(len(logprobs), dtype=torch.bool)
        self.policy.update(
            self.algorithm, Credited(groups=groups, advantages=advantages, trained=trained, sampled_logprobs=logprobs)
        )
        await self.engine.load_weights(self.policy.weights())

    def film(self, seed: int) -> Clip:
        """A video unlike all others."""
        clip = noise(self.family, 4, 2)
        pixels = torch.randint(0, 256, clip.frames.shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
        return Clip(frames=pixels, meta=clip.meta)


async def measured(run: Run, folder: Path, steps: int) -> dict[str, Any]:
    """Medians and growth."""
    await run.engine.start(str(folder), run.family, run.processor, None)
    seen: dict[str, list[int]] = {"trainer": [], "vllm": []}
    try:
        for number in range(steps):
            await run.step(number)
            for who, leader in (("trainer", os.getpid()), ("vllm", run.engine._process.pid)):
                seen[who].append(resident(leader))
            if number % 20 == 0:
                print(number, {who: values[-1] // 1024 for who, values in seen.items()}, file=sys.stderr, flush=True)
    finally:
        await run.engine.close()
    out: dict[str, Any] = {"steps": steps}
    for who, values in seen.items():
        first, last = (statistics.median(part) / 1024 for part in (values[steps // 5 :][:AVERAGED], values[-AVERAGED:]))
        out[who] = {"after_a_fifth_mb": round(first, 1), "at_the_end_mb": round(last, 1), "growth": round(last / first - 1, 4)}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--family", default="qwen3_vl")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(json.dumps(asyncio.run(measured(Run(args.family, folder), folder, args.steps)), indent=2))


if __name__ == "__main__":
    main()
