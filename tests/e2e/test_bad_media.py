"""A run on records whose films cannot all be decoded: an error before anything is written, or fewer records, by policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evr1_core.cli.main import main
from evr1_core.demo import settings
from evr1_core.demo.dataset import DemoData, write_dataset


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> DemoData:
    from evr1_plugins.models.qwen3_vl import Qwen3VL

    data = write_dataset(tmp_path / "data", train_films=3, val_films=1, seed=4)
    Qwen3VL().tiny(tmp_path / "tiny", width=64, vision_width=64)
    (data.root / "films" / "train-0001.mp4").write_bytes(b"<html>404</html>")
    return data


def run(data: DemoData, *sets: str) -> int:
    folder = data.root.parent
    plain = settings.warm_start(data, 0)
    plain["train"] |= {"steps": 1, "prompts_per_step": 2, "warmup_steps": 0}
    plain["log"] |= {"trackers": ["jsonl"]}
    file = settings.write(plain, folder / "run.yaml")
    words = ["run", "--algo", "sft", "--rewards", "temporal_iou,mcq", "--config", str(file), "--model", str(folder / "tiny")]
    return main([*words, "--output", str(folder / "out"), *(word for text in sets for word in ("--set", text))])


def test_an_unreadable_film_stops_the_run_before_it_writes(data: DemoData, capsys: pytest.CaptureFixture[str]):
    assert run(data) == 2
    printed = capsys.readouterr().err
    assert "warm.jsonl:5: record 'warm:4'" in printed
    assert "train-0001.mp4" in printed
    assert "data.on_bad_media: skip" in printed
    assert not (data.root.parent / "out").exists()


def test_its_records_are_left_out_and_counted_where_that_is_allowed(data: DemoData):
    assert run(data, "data.on_bad_media=skip", "data.max_bad_media=0.5") == 0
    out = data.root.parent / "out"
    notes = json.loads((out / "manifest.json").read_text())["notes"]
    assert sum("train-0001.mp4" in note for note in notes) == 4
    last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["data/bad_media"] == 4


def test_prompts_that_are_too_long_stop_the_run_or_are_left_out(data: DemoData, capsys: pytest.CaptureFixture[str]):
    settled = ("data.on_bad_media=skip", "data.max_bad_media=0.5")
    assert run(data, *settled, "rollout.max_prompt_tokens=90") == 2
    printed = capsys.readouterr().err
    assert "warm.jsonl:1: record 'warm:0': the prompt has" in printed
    assert "rollout.on_long_prompt: skip" in printed
    assert not (data.root.parent / "out").exists()
    assert run(data, *settled, "rollout.max_prompt_tokens=90", "rollout.on_long_prompt=skip") == 2
    assert "no sample is left to train on: all prompts are longer" in capsys.readouterr().err
