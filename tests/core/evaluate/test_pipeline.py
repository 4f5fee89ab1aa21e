"""How the stages work together: an engine with slots is kept full, however slow the frames' first decoding was."""

from __future__ import annotations

import sys
from pathlib import Path

PACED = str(Path(__file__).with_name("paced.py"))


def paced_run(evaluation, root, **options):
    sets = f"engine={{name: '{PACED}:Paced', options: {{slots: 8, prefill: 0.1, token: 0.01, tokens: 10}}}}"
    made = evaluation(sets, **options)
    try:
        made.ask()
        return made.report()[0], next(m for n, m in sys.modules.items() if n.startswith("_evr1_file_paced")).STARTED[-1]
    finally:
        made.close()


def test_all_slots_are_filled_with_a_warm_cache(evaluation, tmp_path):
    from tests.core.evaluate.conftest import write_release

    write_release(tmp_path / "many", videos=4, per_video=16)
    paced_run(evaluation, tmp_path, data=tmp_path / "many", output=tmp_path / "cold")
    summary, engine = paced_run(evaluation, tmp_path, data=tmp_path / "many", output=tmp_path / "warm")
    assert summary["score"] == 25.0
    assert summary["counts"]["n_total"] == len(engine.busy) == 64
    assert engine.filled() >= 0.95


def test_a_slow_video_holds_nothing_else_up(evaluation, root, monkeypatch, tmp_path):
    import time

    from evr1_core.cache import frames

    clip = frames.FrameCache.clip

    def slow(self, media):
        if media.path.endswith("v0.mp4"):
            time.sleep(1.0)
        return clip(self, media)

    monkeypatch.setattr(frames.FrameCache, "clip", slow)
    _, engine = paced_run(evaluation, root)
    ends = sorted(end for _, end in engine.busy)
    assert len([end for end in ends if end < ends[-1] - 0.5]) >= 8  # the other two films' questions were through long before
