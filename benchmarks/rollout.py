"""How fast responses are drawn from the live model, and how exact their log-probs are.

    python benchmarks/rollout.py [--runs 3] [--only speed exactness order] [--families qwen3_vl ...]

Prints JSON. `speed`: one prompt of 1,024 tokens with a video, 8 responses of 64 tokens, a model of 6 layers of width 512 with
random weights: the engine against Transformers' `generate` on 8 copies of the same inputs, in turns, medians of wall seconds, one
thread; and the engine `vllm` where vLLM is installed, each time behind a weight update, which empties its caches (Qwen3.5 in
bfloat16). `exactness`: the largest distance between the log-probs that the engine returns and those of a training forward,
float32, on text, image, video and mixed prompts in one batch. `order`: the largest change of a training log-prob when the prompts
of such a batch are permuted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import torch

from evr1_core.api import Clip, Encoded, Media, ModelFamily, Prompt, Request, Sample, Sampling, VideoMetadata
from evr1_core.api.processing import processed
from evr1_core.config.schema import RolloutConfig, RunConfig
from evr1_core.registry.loading import build_plugin
from evr1_core.rollout.groups import EncodedPrompt, Group, encode_prompt, sampled
from evr1_core.train.policy import Policy
from evr1_core.train.session import load_processor

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5")
LENGTH, RESPONSES, NEW = 1024, 8, 64


def noise(family: ModelFamily, frames: int, patches: int) -> Clip:
    """A video of that many frames, two a second, with sides of so many merged patches; a picture for a single frame."""
    side = patches * family.grid.factor
    pixels = torch.randint(0, 256, (frames, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(frames))
    if frames == 1:
        return Clip(frames=pixels)
    sizes = {"height": side, "width": side, "source_height": side, "source_width": side}
    times = tuple(number / 2 for number in range(frames))
    return Clip(
        frames=pixels,
        meta=VideoMetadata(fps=2, total_frames=frames, duration=frames / 2, indices=tuple(range(frames)), times=times, **sizes),
    )


def loaded(name: str, folder: Path, **sizes: int) -> tuple[ModelFamily, Any, Any]:
    """(family, processor, module) of a new checkpoint with random weights."""
    family: ModelFamily = build_plugin("models", name, {}, place="benchmark")
    family.tiny(folder, seed=0, **sizes)
    return family, load_processor(str(folder)), family.load(str(folder)).eval()


def encoded_prompt(family: ModelFamily, processor: Any, clips: tuple[Clip, ...], words: str) -> EncodedPrompt:
    media = tuple(Media(kind=clip.kind, path=str(number)) for number, clip in enumerate(clips))
    sample = Sample(uid=words[:20], task="open-ended", problem=words, answer="", media=media)
    return encode_prompt(family, processor, sample, Prompt(parts=(*media, words)), clips, 8192)


def of_length(family: ModelFamily, processor: Any, clips: tuple[Clip, ...], length: int) -> EncodedPrompt:
    """A prompt of exactly that many tokens where words can make it so, else a few less."""
    words = 0
    best = encoded_prompt(family, processor, clips, "?")
    while True:
        words += max(1, (length - best.num_tokens) // 8)
        longer = encoded_prompt(family, processor, clips, "?" + " what" * words)
        if longer.num_tokens > length:
            return best
        best = longer


def responses(engine: Any, prompts: list[EncodedPrompt], **sampling: Any) -> list[list[Any]]:
    requests = [
        Request(uid=prompt.sample.uid, text=prompt.text, clips=prompt.clips, sampling=Sampling(seed=number, **sampling))
        for number, prompt in enumerate(prompts)
    ]
    return asyncio.run(engine.generate(requests))


def engine_of(family: ModelFamily, processor: Any, module: Any) -> Any:
    engine = build_plugin("engines", "hf", {}, place="benchmark")
    asyncio.run(engine.start("", family, processor, module))
    return engine


@contextmanager
def vllm_of(name: str, folder: Path, family: ModelFamily, processor: Any, module: Any) -> Iterator[Any]:
    """The engine `vllm`, or None without vLLM. No response ends before its limit."""
    if find_spec("vllm") is None:
        yield None
        return
    module.generation_config.eos_token_id = sorted(family.banned_ids(processor))
    module.generation_config.save_pretrained(folder)
    os.environ["OMP_NUM_THREADS"] = "1"
    dtype = "bfloat16" if name == "qwen3_5" else "float32"
    options = {"dtype": dtype, "enforce_eager": True, "max_model_len": 4096}
    engine = build_plugin("engines", "vllm", options, place="benchmark")
    try:
        asyncio.run(engine.start(str(folder), placed(family), processor, None))
        yield engine
    finally:
        asyncio.run(engine.close())


def placed(family: ModelFamily) -> ModelFamily:
    """The family with text behind a video where vLLM has it."""
    names = {field.name for field in attrs.fields(type(family))}
    return attrs.evolve(family, past_time=True) if "past_time" in names else family


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(name: str, folder: Path, runs: int) -> dict[str, Any]:
    """Seconds of the engine and of `generate` for one group."""
    family, processor, module = loaded(name, folder, width=512, layers=6)
    clip = noise(family, 16, 4)
    prompt = of_length(family, processor, (clip,), LENGTH)
    with vllm_of(name, folder, family, processor, module) as vllm:
        return against_others(family, processor, module, vllm, prompt, runs)


def against_others(family: ModelFamily, processor: Any, module: Any, vllm: Any, prompt: EncodedPrompt, runs: int) -> dict[str, Any]:
    module.generation_config.eos_token_id = [prompt.encoded.input_ids.max().item() + 10**6]  # never drawn: all have 64 tokens
    engine = engine_of(family, processor, module)
    inputs = processed(processor, prompt.text, prompt.clips, family.grid)
    copies = {key: value.repeat(RESPONSES, *[1] * (value.dim() - 1)) for key, value in inputs.items() if torch.is_tensor(value)}
    if "second_per_grid_ts" in inputs:
        copies["second_per_grid_ts"] = list(inputs["second_per_grid_ts"]) * RESPONSES

    def ours(engine: Any = engine) -> None:
        [group] = responses(engine, [prompt], n=RESPONSES, max_tokens=NEW)
        assert all(len(one.token_ids) == NEW for one in group)

    def updated() -> float:
        return timed(lambda: asyncio.run(vllm.load_weights(module.named_parameters())))

    def theirs() -> None:
        with torch.inference_mode():
            out = module.generate(**copies, max_new_tokens=NEW, do_sample=True, temperature=1.0, top_k=0)
        assert out.shape == (RESPONSES, prompt.num_tokens + NEW)

    seconds: dict[str, list[float]] = {"evr1": [], "generate": []}
    ours(), theirs()  # warm
    for _ in range(runs + 1 if vllm else 0):
        seconds.setdefault("vllm_weights", []).append(updated())
        seconds.setdefault("vllm", []).append(timed(lambda: ours(vllm)))
    for way in seconds.keys() - {"evr1", "generate"}:
        del seconds[way][0]  # warm
    for _ in range(runs):
        seconds["evr1"].append(timed(ours))
        seconds["generate"].append(timed(theirs))
    medians = {way: round(statistics.median(values), 3) for way, values in seconds.items()}
    return {
        "prompt_tokens": prompt.num_tokens,
        "visual_tokens": visual_tokens(prompt.encoded),
        "seconds": medians,
        "times_faster": round(medians["generate"] / medians["evr1"], 2),
    } | ({"vllm_times_faster_than_evr1": round(medians["evr1"] / medians["vllm"], 2)} if vllm else {})


def visual_tokens(encoded: Encoded) -> int:
    return int((encoded.token_kind > 0).sum())


def mixed(family: ModelFamily, processor: Any) -> list[EncodedPrompt]:
    """Text, image, video, and both, in one batch."""
    image, video = noise(family, 1, 2), noise(family, 5, 2)
    clips: tuple[tuple[Clip, ...], ...] = ((), (image,), (video,), (image, video), (video, image, video))
    return [encoded_prompt(family, processor, own, f"What is this {number}?") for number, own in enumerate(clips)]


def trained_logprobs(family: ModelFamily, processor: Any, module: Any, groups: list[Group]) -> torch.Tensor:
    config = RunConfig(rollout=RolloutConfig(temperature=1.0, max_response_tokens=32))
    return Policy(module, family, processor, config, total_updates=1).logprobs(groups)


def exactness(name: str, folder: Path, _runs: int) -> dict[str, Any]:
    """The largest distance of a log-prob between engine and training forward."""
    family, processor, module = loaded(name, folder)
    prompts = mixed(family, processor)
    drawn = responses(engine_of(family, processor, module), prompts, n=4, max_tokens=32)
    groups = [Group(prompt=prompt, responses=[sampled(one) for one in own]) for prompt, own in zip(prompts, drawn, strict=True)]
    trained = trained_logprobs(family, processor, module, groups)
    flat = [one for own in drawn for one in own]
    apart = [(row[: len(one.token_ids)] - torch.tensor(one.logprobs)).abs().max() for row, one in zip(trained, flat, strict=True)]
    return {"tokens": sum(len(one.token_ids) for one in flat), "largest": float(f"{max(apart):.2e}")}


def order(name: str, folder: Path, _runs: int) -> dict[str, Any]:
    """The largest change of a log-prob when the prompts of a batch are turned round."""
    family, processor, module = loaded(name, folder)
    prompts = mixed(family, processor)
    drawn = responses(engine_of(family, processor, module), prompts, n=2, max_tokens=16)
    groups = [Group(prompt=prompt, responses=[sampled(one) for one in own]) for prompt, own in zip(prompts, drawn, strict=True)]
    forward = trained_logprobs(family, processor, module, groups).view(len(groups), 2, -1)
    backward = trained_logprobs(family, processor, module, groups[::-1]).view(len(groups), 2, -1)
    return {"largest": float(f"{(forward - backward.flip(0)).abs().max():.2e}")}


PARTS: dict[str, Callable[[str, Path, int], dict[str, Any]]] = {"speed": speed, "exactness": exactness, "order": order}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in args.only:
            for name in args.families:
                out.setdefault(part, {})[name] = PARTS[part](name, Path(folder) / part / name, args.runs)
                print(f"{part} {name}: {json.dumps(out[part][name])}", file=sys.stderr, flush=True)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
