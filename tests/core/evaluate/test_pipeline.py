"""How the stages work together: an engine with slots is kept full, however slow the frames' first decoding was."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from evr1_core.cache import frames
from evr1_core.evaluate.memory import Room
from tests.core.evaluate.conftest import SMALL, write_release

PACED = str(Path(__file__).with_name("paced.py"))


def engines():
    """The paced engines so far."""
    return next((module.STARTED for name, module in sys.modules.items() if name.startswith("_evr1_file_paced")), [])


def paced_run(evaluation, root, sets=(), **options):
    engine = f"engine={{name: '{PACED}:Paced', options: {{slots: 8, prefill: 0.1, token: 0.01, tokens: 10}}}}"
    made = evaluation(engine, *sets, **options)
    try:
        made.ask()
        return made.report()[0], engines()[-1]
    finally:
        made.close()


def test_all_slots_are_filled_with_a_warm_cache(evaluation, tmp_path):
    write_release(tmp_path / "many", videos=4, per_video=16)
    paced_run(evaluation, tmp_path, data=tmp_path / "many", output=tmp_path / "cold")
    summary, engine = paced_run(evaluation, tmp_path, data=tmp_path / "many", output=tmp_path / "warm")
    assert summary["score"] == 25.0
    assert summary["counts"]["n_total"] == len(engine.busy) == 64
    assert engine.filled() >= 0.95


def test_a_slow_video_holds_nothing_else_up(evaluation, root, monkeypatch, tmp_path):
    paced_run(evaluation, root, output=tmp_path / "first")  # decodes
    clip = frames.FrameCache.clip

    def slow(self, media):
        if media.path.endswith("v0.mp4"):
            time.sleep(1.0)
        return clip(self, media)

    monkeypatch.setattr(frames.FrameCache, "clip", slow)
    _, engine = paced_run(evaluation, root)
    ends = sorted(end for _, end in engine.busy)
    assert len([end for end in ends if end < ends[-1] - 0.5]) >= 8  # the other two films' questions were through long before


def test_frames_under_way_stay_within_their_memory(evaluation, root):
    """Frames of 4 x 3 x 32 x 32 values or more: three requests at most fit into 160 kB, and every question is asked."""
    _, engine = paced_run(evaluation, root, sets=["frames_gb=0.00015"])
    events = sorted([(start, 1) for start, _ in engine.busy] + [(end, -1) for _, end in engine.busy])
    most = now = 0
    for _, step in events:
        now += step
        most = max(most, now)
    assert len(engine.busy) == 12
    assert 1 <= most <= 3


def test_room_is_given_in_the_order_asked():
    async def run():
        room, order = Room(10), []

        async def take(name, size, seconds):
            await room.enter(size)
            order.append(name)
            await asyncio.sleep(seconds)
            room.leave(size)

        await asyncio.gather(take("a", 6, 0.02), take("b", 6, 0.0), take("c", 4, 0.0), take("huge", 50, 0.0), take("d", 1, 0.0))
        return order

    assert asyncio.run(run()) == ["a", "b", "c", "huge", "d"]


def test_two_benchmarks_share_one_engine_and_a_listener_hears_of_both(root, cache, tmp_path, monkeypatch):
    from evr1_core.cli.main import main
    from evr1_core.registry.hooks import Hooks
    from tests.tiny import tiny_folder

    data = tmp_path / "data"
    data.mkdir()
    (data / "livesports3k_qa").symlink_to(root / "livesports3k_qa")
    (data / "openqa").mkdir()
    (data / "openqa" / "v.mp4").symlink_to(root / "livesports3k_qa" / "videos" / "v0.mp4")
    question = {"id": "1", "question": "What is it?", "answer": "B", "video": "v.mp4", "kind": "x"}
    (data / "openqa" / "openqa.jsonl").write_text(json.dumps(question))
    heard = []
    monkeypatch.setattr(Hooks, "call", lambda self, event, **words: heard.append((event, words["name"], len(words["rows"]))) or [])
    names = f"livesports3k_qa,{Path(__file__).with_name('openqa.py')}:OpenQA"
    words = ["--model", str(tiny_folder()), "--data", str(data), "--output", str(tmp_path / "out"), "--protocol", "ref"]
    sets = [*SMALL, f"cache.folder={cache}", f"engine={{name: '{PACED}:Paced', options: {{prefill: 0.0, token: 0.0}}}}"]
    before = len(engines())
    assert main(["eval", "--benchmarks", names, *words, *(f"--set={each}" for each in sets)]) == 0
    assert len(engines()) == before + 1
    assert heard == [("evr1_benchmark_scored", "livesports3k_qa", 12), ("evr1_benchmark_scored", "openqa", 1)]
    summaries = json.loads((tmp_path / "out" / "results.json").read_text())["benchmarks"]
    assert [summary["score"] for summary in summaries] == [25.0, 100.0]
    assert [record["name"] for record in summaries[0]["protocol"]["plugins"]] == ["livesports3k_qa", f"{PACED}:Paced"]
