"""`evr1 run` in two processes: the same samples, metrics and model as in one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from evr1_core.demo.dataset import write_dataset
from tests.ranks import run_ranks
from tests.tiny import tiny_folder

STEPS = 3
LETTERS = "<think>x</think><answer>{}</answer>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of every modality with stored trajectories, settings, and the run in one process."""
    folder = tmp_path_factory.mktemp("sharded")
    data = write_dataset(folder / "data", train_films=2, val_films=1, seed=4)
    films = sorted(str(path) for path in (data.root / "films").glob("*.mp4"))
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)).save(folder / "a.png")
    image = str(folder / "a.png")
    media = [("", {}), ("<image>", {"images": [image]}), ("<video>", {"videos": films[:1]})]
    media.append(("<image><video>", {"images": [image], "videos": films[1:2]}))
    rows = [
        {
            "problem": f"{start}Question {number}: which?",
            "answer": "<answer>A</answer>",
            "options": ["A. yes", "B. no"],
            "problem_type": "multiple choice",
            "has_offline_trajectory": True,
            "offline_output": LETTERS.format("AB"[number % 2]),
            **files,
        }
        for number in range(4)
        for start, files in media
    ]
    (folder / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "run.yaml").write_text(yaml.safe_dump(settings(folder)))
    run(folder, 1, "one")
    return folder


def settings(folder):
    records = [str(folder / "records.jsonl")]
    return {
        "model": {"path": str(tiny_folder())},
        "data": {"train": records, "val": records},
        "frames": {"video_frames": 5, "video_max_pixels": 4096, "image_max_pixels": 8192},
        "cache": {"folder": str(folder / "cache")},
        "rewards": {"mcq": {}},
        "rollout": {"n": 3, "max_response_tokens": 8},
        "mix": {"enabled": True},
        "train": {"steps": STEPS, "prompts_per_step": 5, "prompts_per_update": 3, "groups_per_batch": 1, "lr": 1e-4, "threads": 1},
        "val": {"max_samples": 5},
        "log": {"trackers": [{"name": "jsonl"}], "samples_every": 1, "samples": 5},
    }


def run(folder, size, name, *sets):
    words = ["-m", "evr1_core", "run", "--algo", "grpo", "--config", str(folder / "run.yaml"), "--output", str(folder / name)]
    return run_ranks(size, [*words, *(word for each in sets for word in ("--set", each))], timeout=250)


def metrics(folder, name):
    rows = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: {key: value for key, value in row.items() if key.partition("/")[0] not in CLOCKS} for row in rows}


CLOCKS = {"time", "timing_s", "timing_per_token_ms", "perf", "global_seqlen"}  # and what there is with several processes alone


@pytest.mark.slow
def test_two_processes_do_what_one_does(folder):
    from transformers import AutoModelForImageTextToText

    texts = run(folder, 2, "two")
    one, two = metrics(folder, "one"), metrics(folder, "two")
    assert list(one) == list(two) == list(range(STEPS + 1))
    for step, row in one.items():
        assert two[step] == pytest.approx(row, rel=1e-3, abs=1e-4), step
    assert {path.name for path in (folder / "two").iterdir()} == {path.name for path in (folder / "one").iterdir()}
    for file in (f"samples/responses-{STEPS}.jsonl", f"validation/step-{STEPS}.jsonl"):
        found = [(folder / name / file).read_text() for name in ("one", "two")]
        assert found[0] == found[1], file
    models = [AutoModelForImageTextToText.from_pretrained(folder / name / "model") for name in ("one", "two")]
    apart = [(a - b).detach().abs().mean() for a, b in zip(*(model.parameters() for model in models), strict=True)]
    assert float(torch.stack(apart).max()) < 1e-5
    assert "responses" not in texts[1]
    last = json.loads((folder / "two" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["global_seqlen/balanced_max"] <= last["global_seqlen/max"]


@pytest.mark.slow
def test_all_switches_at_once(folder):
    from transformers import AutoModelForImageTextToText

    switches = ["train.gradient_checkpointing=true", "lora.rank=4", "model.dtype=bfloat16", "sharding.cpu_offload=true"]
    run(folder, 2, "low", *switches, "train.steps=2", "kl.place=loss")
    model = AutoModelForImageTextToText.from_pretrained(folder / "low" / "model")
    assert model.dtype == torch.bfloat16
    assert (folder / "low" / "model" / "adapter" / "adapter_model.safetensors").is_file()
    last = metrics(folder, "low")[2]
    assert last["actor/grad_norm"] > 0
    assert last["actor/kl_loss"] >= 0


@pytest.mark.slow
def test_an_error_of_one_process_ends_all(folder):
    """Before the first step, and by a message, not by a time limit."""
    with pytest.raises(AssertionError, match="nowhere is no checkpoint folder"):
        run(folder, 2, "none", "model.path=nowhere")
