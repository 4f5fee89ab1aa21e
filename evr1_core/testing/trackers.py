"""The contract of trackers."""

from __future__ import annotations

from pathlib import Path

from evr1_core.api import Tracker

METRICS = {"train/reward": 0.5, "train/nan": float("nan"), "train/inf": float("inf"), "train/tokens": 12.0}
ROWS = (
    {"uid": "a/0", "response": "<think>x</think>\n[bold]\u00e9\x1b", "reward": 1.0, "parts": {"format": 1.0}},
    {"uid": "a/1", "response": ""},
)


def check_tracker(tracker: Tracker, folder: Path) -> None:
    """A run of three steps into ``folder``: not-a-number, markup and control characters pass, and closing twice is harmless."""
    folder.mkdir(parents=True, exist_ok=True)
    tracker.start({"algorithm": {"name": "grpo"}, "train": {"steps": 3}}, folder, 3)
    for step in range(1, 4):
        tracker.log(step, METRICS)
        tracker.rows(step, "samples", ROWS)
    tracker.log(4, {})
    tracker.rows(4, "samples", ())
    tracker.close()
    tracker.close()
