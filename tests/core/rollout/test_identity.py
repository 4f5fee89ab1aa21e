"""Which changes give another hash, and which do not."""

from __future__ import annotations

import shutil

import pytest
from attrs import evolve

from evr1_core.api import Media, Sample, Sampling
from evr1_core.config.sources import load_config
from evr1_core.rollout.identity import STRIDE, checkpoint_id, record_id, settings_id

SETS = ("rewards=[mcq,temporal_iou]", "frames.video_fps=1")


@pytest.fixture(name="folder")
def _folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(5 * STRIDE // 2)
    return folder


def of(folder, *sets, **sampling):
    config = load_config(None, [f"model.path={folder}", *SETS, *sets], {})
    return settings_id(config, Sampling(**{"n": 8, **sampling}))


def test_a_checkpoint_is_known_by_its_content(folder, tmp_path):
    before = checkpoint_id(folder)
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert checkpoint_id(tmp_path / "elsewhere") == before
    (folder / "README.md").write_text("notes")
    assert checkpoint_id(folder) == before
    (folder / "config.json").write_text("{} ")
    assert checkpoint_id(folder) != before


@pytest.mark.parametrize("place", [0, STRIDE, STRIDE + 7])
def test_no_large_change_of_the_weights_goes_unseen(folder, place):
    before = checkpoint_id(folder)
    with (folder / "model.safetensors").open("rb+") as file:
        file.seek(place)
        file.write(b"x" if place % STRIDE == 0 else b"x" * STRIDE)
    assert checkpoint_id(folder) != before


def test_small_files_are_read_whole(folder):
    (folder / "tokenizer.json").write_bytes(bytes(300_000))
    before = checkpoint_id(folder)
    (folder / "tokenizer.json").write_bytes(bytes(299_999) + b"x")
    assert checkpoint_id(folder) != before


CHANGES = [
    "model.dtype=bfloat16",
    "frames.video_fps=2",
    "rewards=[mcq]",
    "rewards.temporal_iou.clock=false",
    "reward.format.reasoning_tag=reasoning",
    "data.prompt_style=direct",
    "train.seed=1",
]


def test_settings_that_matter(folder, tmp_path):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "default.jinja").write_text("{{ problem }}")
    templates = f"data.templates={tmp_path / 'templates'}"
    found = [of(folder), of(folder, templates), of(folder, n=4), of(folder, temperature=0.9), of(folder, max_tokens=7)]
    found += [of(folder, change) for change in CHANGES]
    (tmp_path / "templates" / "default.jinja").write_text("{{ problem }}!")
    found.append(of(folder, templates))
    assert len(set(found)) == len(found)


def test_settings_that_do_not_matter(folder):
    others = ["rewards=[temporal_iou,mcq]", "rewards.mcq.weight=2", "reward.format_weight=0", "train.prompts_per_step=3"]
    others += ["cache.folder=x", "output=y", "algorithm=grpo", "rollout.n=3", "data.media_root=/"]
    assert {of(folder, change) for change in others} == {of(folder)}


def test_records(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"123")
    media = (Media(kind="video", path=str(tmp_path / "a.mp4")),)
    sample = Sample(uid="x:0", task="t", problem="p", answer="a", media=media, extra={"n": 1})
    before = record_id(sample, tmp_path)
    assert record_id(evolve(sample, uid="y:3", origin="y:4", offline="o", source="s"), tmp_path) == before
    others = [
        evolve(sample, problem="q"),
        evolve(sample, answer="b"),
        evolve(sample, options=("a",)),
        evolve(sample, extra={"n": 2}),
        evolve(sample, media=(evolve(media[0], span=(0.0, 1.0)),)),
    ]
    found = {record_id(each, tmp_path) for each in others}
    (tmp_path / "a.mp4").write_bytes(b"1234")
    found.add(record_id(sample, tmp_path))
    assert len(found - {before}) == 6
