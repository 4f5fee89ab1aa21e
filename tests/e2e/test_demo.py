"""The demo's path on a handful of films: every stage runs, and leaves what the next one needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from evr1_core.cli.main import main
from evr1_core.demo import settings
from evr1_core.demo.dataset import corpus_of, write_dataset
from evr1_core.demo.questions import best_constant_iou, blind

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films, a tiny model and two short runs, one after the other."""
    from evr1_plugins.models.qwen3_vl import Qwen3VL

    folder = tmp_path_factory.mktemp("demo")
    data = write_dataset(folder / "data", train_films=6, val_films=2, seed=3)
    Qwen3VL().tiny(folder / "tiny", seed=3, corpus=corpus_of([data.warm]), width=64, vision_width=64)
    short = {"steps": 2, "prompts_per_step": 4, "groups_per_batch": 4, "warmup_steps": 0}
    model = folder / "tiny"
    for algorithm, plain in (("sft", settings.warm_start(data, 3)), ("grpo", settings.reinforcement(data, 3))):
        plain["train"] |= short
        plain["rollout"]["n"] = 3
        plain["log"]["samples_every"] = 2
        file = settings.write(plain, folder / f"{algorithm}.yaml")
        words = ["run", "--algo", algorithm, "--rewards", "temporal_iou,mcq", "--config", str(file), "--model", str(model)]
        assert main([*words, "--output", str(folder / algorithm)]) == 0
        model = folder / algorithm / "model"
    return folder


def test_each_run_leaves_a_model_that_the_auto_classes_load(folder: Path):
    from transformers import AutoModelForImageTextToText, AutoProcessor

    for run in ("sft", "grpo"):
        model = AutoModelForImageTextToText.from_pretrained(folder / run / "model")
        assert AutoProcessor.from_pretrained(folder / run / "model").chat_template
        assert model.generation_config.eos_token_id


def test_a_run_folder_tells_what_was_run(folder: Path):
    stored = yaml.safe_load((folder / "grpo" / "config.yaml").read_text())
    assert stored["algorithm"]["name"] == "grpo"
    assert stored["rollout"]["n"] == 3
    manifest = json.loads((folder / "grpo" / "manifest.json").read_text())
    assert {"group": "rewards", "name": "mcq"}.items() <= manifest["plugins"][-1].items()
    assert list((folder / "grpo" / "tensorboard").iterdir())


def test_metrics_and_dumps_are_written(folder: Path):
    rows = [json.loads(line) for line in (folder / "grpo" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert {"val/accuracy", "val/multiple_choice/accuracy", "val/shapes_colour/accuracy"} <= rows[0].keys()
    assert {"actor/pg_loss", "actor/grad_norm", "critic/score/mean", "reward/format", "timing_s/gen"} <= rows[1].keys()
    dump = (folder / "grpo" / "samples" / "responses-2.txt").read_text()
    assert dump.count("response:") == 12
    validation = [json.loads(line) for line in (folder / "grpo" / "validation" / "step-2.jsonl").read_text().splitlines()]
    assert len(validation) == 8


def test_stored_trajectories_take_the_last_slot_of_grounding_groups_only(folder: Path):
    dump = (folder / "grpo" / "samples" / "responses-2.txt").read_text().split("-" * 80)
    rows = [block for block in dump if "task:" in block]
    stored = ["offline: True" in block for block in rows]
    tasks = ["temporal grounding" in block for block in rows]
    expected = [grounding and number % 3 == 2 for number, grounding in enumerate(tasks)]
    assert stored == expected


def test_splits_share_no_film_and_blind_questions_see_another_one(folder: Path):
    files = {
        name: [json.loads(line) for line in (folder / "data" / f"{name}.jsonl").read_text().splitlines()]
        for name in ("train", "val")
    }
    films = {name: {row["videos"][0] for row in rows} for name, rows in files.items()}
    assert not films["train"] & films["val"]
    for own, other in zip(files["val"], blind(files["val"]), strict=False):
        assert own["videos"] != next(
            row["videos"] for row in blind(files["val"]) if row["problem_id"] == f"blind-{own['problem_id']}"
        )
        assert other["answer"]


def test_best_constant_span_by_hand():
    rows = [{"answer": f'<answer>{{"time": [{a}, {b}]}}</answer>'} for a, b in ((0, 2), (0, 2), (1, 3))]
    score, span = best_constant_iou(rows, 3)
    assert (score, span) == (pytest.approx((1 + 1 + 1 / 3) / 3), (0, 2))


def test_a_finished_run_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]):
    words = ["run", "--algo", "grpo", "--rewards", "temporal_iou,mcq", "--config", str(folder / "grpo.yaml")]
    assert main([*words, "--model", str(folder / "tiny"), "--output", str(folder / "grpo")]) == 2
    assert "finished run" in capsys.readouterr().err
