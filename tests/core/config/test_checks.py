from pathlib import Path

import pytest

from evr1_core.api import ConfigError
from evr1_core.config.checks import check
from evr1_core.config.sources import load

COMPLETE = ["algorithm=grpo", "rewards=mcq", "model.path=m", "data.train=t.jsonl"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder in which the files of COMPLETE exist."""
    monkeypatch.chdir(tmp_path)
    Path("m").mkdir()
    Path("m/config.json").write_text("{}")
    Path("t.jsonl").write_text("{}")


def problems(*sets, file=None, flags=None, files=True, complete=True):
    loaded = load(file, [*(COMPLETE if complete else []), *sets], flags or {})
    try:
        assert check(loaded, files=files) is loaded.config
    except ConfigError as error:
        return list(error.problems)
    return []


def test_a_complete_configuration_passes():
    assert problems() == []


def test_all_that_is_missing_is_one_error():
    assert problems(complete=False) == [
        "algorithm: must be given, by --algo or in the configuration file",
        "model.path: must be given, by --model or in the configuration file",
        "data.train: must be given, by --train or in the configuration file",
        "rewards: must be given, by --rewards or in the configuration file",
    ]


def test_rewards_may_be_missing_where_nothing_is_scored():
    assert problems("algorithm=sft", "rewards=null") == []
    assert problems("algorithm=sft", "rewards=null", "data.val=t.jsonl") == [
        "--set rewards: must be given, by --rewards or in the configuration file"
    ]


CONTRADICTIONS = {
    ("rollout.n=1",): "--set rollout.n: grpo compares the responses to a prompt and needs 2 or more; is 1",
    (
        "frames.video_min_frames=9",
        "frames.video_max_frames=8",
    ): "--set frames.video_min_frames: is 9, more than video_max_frames = 8",
    (
        "frames.video_min_pixels=2",
        "frames.video_max_pixels=1",
    ): "--set frames.video_min_pixels: is 2, more than video_max_pixels = 1",
    (
        "frames.image_min_pixels=2",
        "frames.image_max_pixels=1",
    ): "--set frames.image_min_pixels: is 2, more than image_max_pixels = 1",
    ("reward={accuracy_weight: 0, format_weight: 0}",): (
        "--set reward: reward.accuracy_weight: one of accuracy_weight and format_weight must be above 0"
    ),
    ("reward.overlong_buffer=1024",): "--set reward.overlong_buffer: must be below rollout.max_response_tokens = 1024",
    ("reward.fallback=ocr",): "--set reward.fallback: 'ocr' is not among the chosen rewards (mcq)",
    ("train.prompts_per_update=17",): "--set train.prompts_per_update: is 17, more than prompts_per_step = 16",
    ("val.every=5",): "data.val: must be given: val.every = 5 asks for validation",
    ("rollout.engine=null",): "--set rollout.engine: rollout.engine.name: must be given",
    ("log.trackers=[{options: {}}]",): "--set log.trackers: log.trackers[0].name: must be given",
}


@pytest.mark.parametrize("sets", CONTRADICTIONS, ids=" ".join)
def test_settings_that_do_not_go_together(sets):
    assert problems(*sets) == [CONTRADICTIONS[sets]]


@pytest.mark.parametrize("setting", ["top_p=0.9", "top_k=5"])
def test_training_on_a_truncated_distribution_is_refused(setting):
    found = problems(f"rollout.{setting}")
    assert len(found) == 1
    assert found[0].startswith(f"--set rollout.{setting[:5]}: training needs samples of the whole distribution")


def test_files():
    assert problems(
        "data.train=[t.jsonl, no.jsonl]", "data.val=m", "data.media_root=no", "data.templates=t.jsonl", "model.path=no"
    ) == [
        "--set data.train: there is no file no.jsonl",
        "--set data.val: there is no file m",
        "--set data.media_root: there is no folder no",
        "--set data.templates: there is no folder t.jsonl",
        "--set model.path: no is no checkpoint folder (config.json is missing); nothing is downloaded",
    ]
    assert problems("data.train=no.jsonl", "model.path=no", files=False) == []


def test_the_output_must_be_free():
    Path("out/model").mkdir(parents=True)
    Path("started").mkdir()
    assert problems("output=out") == ["--set output: out holds a finished run; choose another folder"]
    assert problems("output=t.jsonl") == ["--set output: t.jsonl is no folder"]
    assert problems("output=started") == []


FILE = """\
algorithm:
  name: grpo
  options:
    clip_low: -1
    clip_hihg: 0.3
rewards:
  mcq: {}
  temporal_iou:
    clok: false
    options: {clock: 3}
  nothing: {}
rollout:
  engine: vlm
model: {family: qwen}
log:
  trackers:
    - jsonl
    - {name: console, options: {every: 0}}
    - wandbb
train:
  lr: x
"""


def test_plugins_and_their_options_have_lines_of_their_own():
    Path("run.yaml").write_text(FILE)
    loaded = load(Path("run.yaml"), [], {"model.path": "m", "data.train": ["t.jsonl"]})
    with pytest.raises(ConfigError) as caught:
        check(loaded)
    found = [problem.partition("(installed:")[0].strip() for problem in caught.value.problems]
    assert found == [
        "run.yaml:21: train.lr: must be a number; is 'x'",
        "run.yaml:5: unknown key algorithm.options.clip_hihg; did you mean algorithm.options.clip_high?",
        "run.yaml:4: algorithm.options.clip_low: must be at least 0; is -1.0",
        "run.yaml:13: rollout.engine: no engine 'vlm'; did you mean 'vllm'?",
        "run.yaml:14: model.family: no model family 'qwen'; did you mean 'qwen3_5'?",
        "run.yaml:18: log.trackers[1].options.every: must be above 0; is 0",
        "run.yaml:19: log.trackers: no tracker 'wandbb'",
        "run.yaml:9: unknown key rewards.temporal_iou.clok; did you mean rewards.temporal_iou.clock?",
        "run.yaml:10: rewards.temporal_iou.clock: must be true or false; is 3",
        "run.yaml:11: rewards.nothing: no reward 'nothing'",
    ]


def test_a_problem_is_reported_once():
    """What a setting with a problem would have been is not known: its default is not held against it."""
    assert sorted(problems("data.train=3", "rollout.n=x", "algorithm=3")) == [
        "--set algorithm: must be a mapping of settings; is 3",
        "--set data.train: must be a list; is 3",
        "--set rollout.n: must be a whole number; is 'x'",
    ]
    assert len(problems(flags={"algorithm": "grop"})) == 1


def test_a_flag_names_itself():
    found = problems(flags={"rewards": "temporal_iuo", "data.train": ["x.json", "y.json"]})
    assert found[0].startswith("--rewards: no reward 'temporal_iuo'; did you mean 'temporal_iou'? (installed: boolean, ")
    assert found[1:] == ["--train: there is no file x.json", "--train: there is no file y.json"]


def test_what_metadata_tell_of_a_family_that_cannot_be_used(install, monkeypatch):
    install("clash")
    monkeypatch.setenv("EVR1_DISABLE", "evr1-test-clash")
    found = problems("model.family=lost")
    assert found == ["--set model.family: model family 'lost' (evr1-test-clash 0.1) cannot be loaded: disabled by EVR1_DISABLE"]


REWARD = """
from attrs import define
from evr1_core.api import Reward

CLOSED = []

@define(kw_only=True)
class Mine(Reward):
    api = 1
    tasks = frozenset({"mine"})
    size: int = 1

    def __attrs_post_init__(self):
        if self.size == 13:
            raise RuntimeError("bad luck")

    def score(self, item): ...

    def close(self):
        CLOSED.append(self.size)
"""


def test_rewards_are_closed_after_the_check():
    import sys

    Path("mine.py").write_text(REWARD)
    assert problems("rewards={mine.py:Mine: {size: 7}}") == []
    module = next(module for name, module in sys.modules.items() if name.startswith("_evr1_file_mine"))
    assert module.CLOSED == [7]
    found = problems("rewards={mine.py:Mine: {size: 13}}")
    assert len(found) == 1
    assert "cannot be built: RuntimeError: bad luck" in found[0]
    assert found[0].startswith("--set rewards: rewards.mine.py:Mine: reward 'mine.py:Mine'")
