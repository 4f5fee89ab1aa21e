"""How fast benchmarks are run.

    python benchmarks/evaluation.py FOLDER [--only speed slots records] [--engine vllm]

Prints JSON; FOLDER takes clips, caches, rows. `speed`: 64 questions about 8 stretches of 60 seconds of a 1080p film, a tiny model
in vLLM (or `--engine hf`), 32 new tokens, each side with an engine of its own and the same settings: three stages at once with a
warm cache and with a cold one, against one question after the other with frames decoded on the fly, and with a warm cache; wall
seconds from the first question to the last row. `slots`: the share of 8 slots in use, between the first and the last 8 requests,
of an engine that sleeps 200 ms for a prompt and 20 ms for a token. `records`: 10,000 questions with responses through loading,
prompting, parsing, scoring and aggregation in this thread: wall seconds and peak memory in MB, for 1,000 and for 10,000.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch

from evr1_core.evaluate.answers import Response, scored
from evr1_core.evaluate.judging import Judging
from evr1_core.evaluate.loading import Loader
from evr1_core.evaluate.memory import Room, allowance
from evr1_core.evaluate.pipeline import Pipeline
from evr1_core.evaluate.run import Evaluation, decoding, frame_cache, prepare
from evr1_core.evaluate.settings import load_settings
from evr1_core.registry.loading import build_plugin

BENCHMARK = "livesports3k_qa"
QUESTIONS, VIDEOS, SECONDS, RATE = 64, 8, 60, 25
PACED = str(Path(__file__).parents[1] / "tests" / "core" / "evaluate" / "paced.py")


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--engine", default="vllm")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.folder.mkdir(parents=True, exist_ok=True)
    out = {}
    for name in args.only:
        out[name] = PARTS[name](args.folder, args.engine)
        print(f"{name}: {json.dumps(out[name])}", file=sys.stderr, flush=True)
    print(json.dumps(out, indent=2))


def speed(folder: Path, engine: str) -> dict[str, Any]:
    """Seconds of every way, and how many times faster three stages at once are."""
    data = folder / "film"
    if not data.exists():
        write_film(folder / "film.part" / BENCHMARK / "videos")
        write_questions(folder / "film.part", QUESTIONS, VIDEOS)
        (folder / "film.part").rename(data)
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    seconds = {}
    for name, together, mode in (
        ("stages_cold", True, "prefer"),
        ("stages_warm", True, "prefer"),
        ("one_by_one_warm", False, "prefer"),
        ("one_by_one_on_the_fly", False, "off"),
    ):
        sets = [f"cache.mode={mode}", f"cache.folder={cache}", "decoding.max_tokens=32", "frames.video_max_frames=120"]
        if engine == "vllm":
            sets.append("engine.options={enforce_eager: true, max_model_len: 32768, cache_gb: 2.0}")
        made = prepared(folder, data, engine, sets)
        seconds[name] = asyncio.run(timed(made, together))
        made.close()
    warm, fly = seconds["stages_warm"], seconds["one_by_one_on_the_fly"]
    ratios = {f"over_{name}": seconds[name] / warm for name in ("one_by_one_on_the_fly", "one_by_one_warm")}
    return {"seconds": seconds, **ratios, "cold_over_on_the_fly": fly / seconds["stages_cold"]}


async def timed(made: Evaluation, together: bool) -> float:
    """Seconds for all questions, the engine's start left out."""
    family, processor = made.model.family, made.model.processor
    assert family is not None
    engine = build_plugin("engines", made.config.engine.name, made.config.engine.options, place="engine")
    module = family.load(made.config.model.path).eval() if engine.in_process else None
    await engine.start(made.config.model.path, family, processor, module)
    loader = Loader(family=family, processor=processor)
    (work,) = made.works
    decoders = decoding(made.config)
    cache = frame_cache(work, family, decoders)
    judging = Judging(client=made.config.judge, said=lambda work, row: None)
    try:
        start = time.perf_counter()
        if together:
            await Pipeline(
                engine=engine,
                loader=loader,
                works=made.works,
                caches={work.id: cache},
                judging=judging,
                workers=made.config.workers,
                room=Room(allowance(made.config.frames_gb)),
                said=lambda work, row: None,
            ).run()
        else:
            for item in work.todo():
                ready = loader.ready(work, cache, item, loader.video(work, cache, item))
                ((rollout,),) = await engine.generate([ready.request])
                work.record(scored(work.benchmark, ready.item, Response(text=rollout.text, boxes=ready.boxes), work.settings))
        return time.perf_counter() - start
    finally:
        decoders.close()
        await engine.close()


def slots(folder: Path, engine: str) -> dict[str, Any]:
    """The share of the slots in use, with a warm cache, of 256 questions about 8 films."""
    data = folder / "films"
    if not data.exists():
        from tests.core.evaluate.conftest import write_release

        write_release(data, videos=8, per_video=32)
    sets = [f"cache.folder={folder / 'small'}", "frames.video_max_frames=8"]
    paced = f"engine={{name: '{PACED}:Paced', options: {{slots: 8, prefill: 0.2, token: 0.02, tokens: 16}}}}"
    for _ in range(2):  # the first fills the cache
        made = prepared(folder, data, "", [*sets, paced])
        made.ask()
        made.close()
    found = next(module for name, module in sys.modules.items() if name.startswith("_evr1_file_paced")).STARTED[-1]
    return {"filled": found.filled(), "requests": len(found.busy)}


def records(folder: Path, engine: str) -> dict[str, Any]:
    """Seconds and megabytes, in processes of their own."""
    out = {}
    for count in (1_000, 10_000):
        data, said = folder / f"records-{count}", folder / f"said-{count}.jsonl"
        shutil.rmtree(data, ignore_errors=True)
        write_questions(data, count, count // 3)
        reasoning = "The frames are looked at one after the other. " * 20
        with said.open("w") as file:
            for number in range(count):
                reply = f"<think>{reasoning}</think>Therefore, the final answer is: {'ABCD'[7 * number % 4]}"
                file.write(json.dumps({"uid": f"{BENCHMARK}/{number}", "response": reply}) + "\n")
        shutil.rmtree(folder / "scored", ignore_errors=True)
        words = [
            "eval",
            "--benchmarks",
            BENCHMARK,
            "--data",
            str(data),
            "--responses",
            str(said),
            "--output",
            str(folder / "scored"),
        ]
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        subprocess.run([sys.executable, "-m", "evr1_core", *words], check=True, capture_output=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        out[str(count)] = {"seconds": time.perf_counter() - start, "peak_mb": max(peak, before) / 1024}
    return out


def prepared(folder: Path, data: Path, engine: str, sets: list[str]) -> Evaluation:
    """An evaluation with a tiny model that has no rows yet."""
    model = folder / "model"
    if not model.exists():
        from evr1_plugins.models.qwen3_vl import Qwen3VL

        Qwen3VL().tiny(model)
    output = folder / "out"
    shutil.rmtree(output, ignore_errors=True)
    flags = {"model.path": str(model), "data": str(data), "output": str(output), "benchmarks": [BENCHMARK]}
    return prepare(load_settings("ref", sets, flags | ({"engine": engine} if engine else {}), "ref"))


def write_questions(data: Path, count: int, videos: int) -> None:
    """A release of LiveSports-3K with ``count`` questions about so many stretches of films."""
    rows = [
        {
            "video_id": f"v{number % videos}",
            "question_id": f"e1_q{number}",
            "q_type": ("Who", "What", "When")[number % 3],
            "OCR": number % 2,
            "question": f"Which colour is it, said for the {number}. time?",
            "options": ["A: red", "B: green", "C: blue", "D: yellow"],
            "answer": "ABCD"[number % 4],
            "begin": float(number % videos % 4),
            "end": float(number % videos % 4 + SECONDS),
        }
        for number in range(count)
    ]
    (data / BENCHMARK).mkdir(parents=True, exist_ok=True)
    (data / BENCHMARK / "LiveSports-3K-QA.json").write_text(json.dumps(rows), "utf-8")


def write_film(folder: Path) -> None:
    """One film of 1080p, with grain and a moving shape, under eight names."""
    folder.mkdir(parents=True, exist_ok=True)
    with av.open(str(folder / "v0.mp4"), "w") as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(RATE), options={"preset": "veryfast", "crf": "23", "g": "250"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for picture in pictures((SECONDS + 4) * RATE):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    for number in range(1, VIDEOS):
        shutil.copyfile(folder / "v0.mp4", folder / f"v{number}.mp4")


def pictures(count: int) -> Iterator[Any]:
    generator = np.random.default_rng(0)
    ground = generator.integers(0, 255, (1080 + 200, 1920 + 400, 3), dtype=np.uint8) // 8 + 60
    for number in range(count):
        left = number * 3 % 400
        picture = np.ascontiguousarray(ground[number % 200 :, left:][:1080, :1920])
        x = 40 + number * 7 % 1600
        picture[400:640, x : x + 240] = (250, 80, 80)
        yield picture


PARTS = {"speed": speed, "slots": slots, "records": records}

if __name__ == "__main__":
    main()
