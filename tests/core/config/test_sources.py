from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from evr1_core.api import ConfigError
from evr1_core.config.schema import PluginChoice, RewardChoice, RunConfig
from evr1_core.config.sources import load, load_config, resolved


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes run.yaml into the current folder, which is the test's own."""
    monkeypatch.chdir(tmp_path)

    def put(text):
        Path("run.yaml").write_text(text)
        return Path("run.yaml")

    return put


def problems(file=None, sets=(), flags=None):
    with pytest.raises(ConfigError) as caught:
        load_config(file, sets, flags or {})
    return list(caught.value.problems)


def test_nothing_given():
    assert load_config(None, [], {}) == RunConfig()
    assert load_config(None, [], {"algorithm": None, "output": None}) == RunConfig()


def test_the_later_source_wins(write):
    file = write("train: {lr: 1e-4, seed: 1, steps: 5}\nmodel: {path: a}\n")
    config = load_config(file, ["train.lr=2e-4", "train.seed=2", "model.path=b"], {"model.path": "c"})
    assert (config.train.lr, config.train.seed, config.train.steps) == (2e-4, 2, 5)
    assert config.model.path == "c"
    assert load_config(file, ["train.seed=2", "train.seed=3"], {}).train.seed == 3


PRESETS = """
from attrs import define
from evr1_core.api import Algorithm

@define(kw_only=True)
class Preset(Algorithm):
    api = 1
    presets = {"rollout.n": 4, "reward.overlong_buffer": 32, "rollout.engine": "hf", "train.lr": "1e-5"}
    def advantages(self, batch): ...
    def policy_loss(self, batch): ...

@define(kw_only=True)
class Wrong(Preset):
    api = 1
    presets = {"rollout.n": 0, "rollout.m": 1}
"""


def test_presets_stand_between_defaults_and_the_file(write):
    Path("mine.py").write_text(PRESETS)
    file = write("rollout: {n: 6}\n")
    config = load_config(file, [], {"algorithm": "mine.py:Preset"})
    assert (config.rollout.n, config.reward.overlong_buffer, config.train.lr) == (6, 32, 1e-5)
    assert load_config(None, ["reward.overlong_buffer=8"], {"algorithm": "mine.py:Preset"}).reward.overlong_buffer == 8
    assert load_config(write("algorithm: mine.py:Preset\nrollout:\n"), [], {}).rollout.n == 4


def test_wrong_presets_are_blamed(write):
    Path("mine.py").write_text(PRESETS)
    assert problems(flags={"algorithm": "mine.py:Wrong"}) == [
        "preset of mine.py:Wrong: unknown key rollout.m (known: engine, n, temperature, top_p, top_k, max_prompt_tokens, "
        "on_long_prompt, max_response_tokens)",
        "preset of mine.py:Wrong: rollout.n: must be above 0; is 0",
    ]


def test_every_problem_has_its_place(write):
    file = write(
        "train:\n  lr: fast\n\n  seeds: 3\nlog:\n  trackers:\n    - console\n    - {nam: x}\ndata:\n  train: [a.json,\n    3]\n"
    )
    assert set(problems(file, ["rollout.n=x", "rolout.n=1"], {"model.path": 3})) == {
        "--model: must be text; is 3; put it in quotes",
        "--set rollout.n: must be a whole number; is 'x'",
        "--set rolout.n: unknown key rolout; did you mean rollout?",
        "run.yaml:11: data.train: must be text; is 3; put it in quotes",
        "run.yaml:2: train.lr: must be a number; is 'fast'",
        "run.yaml:4: unknown key train.seeds; did you mean train.seed?",
        "run.yaml:8: unknown key log.trackers[1].nam; did you mean log.trackers[1].name?",
    }


BROKEN = {
    "a: [": "run.yaml:1: no valid YAML: ",
    "a: b: c": "run.yaml:1: no valid YAML: mapping values are not allowed here",
    "\tx: 1": "run.yaml:1: no valid YAML: ",
    "- a": "run.yaml: must hold a mapping of settings",
    "text": "run.yaml: must hold a mapping of settings",
    "output: !!python/object/apply:os.system [true]": "run.yaml:1: no valid YAML: could not determine a constructor",
    "? [a]\n: 1": "run.yaml:1: no valid YAML: found unhashable key",
    "output: 2024-13-45": "run.yaml: no valid YAML: month must be in 1..12",
    "a: 1\nb: \a": "run.yaml:2: no valid YAML: a control character (code 7)",
    "? \n": "run.yaml:1: unknown key None (known: output, ",
    "on: 1": "run.yaml:1: unknown key True (known: output, ",
    "a: 1\n---\nb: 1": "run.yaml:2: no valid YAML: but found another document",
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken_files(write, text):
    found = problems(write(text))
    assert len(found) == 1
    assert found[0].startswith(BROKEN[text])


def test_files_that_cannot_be_read(tmp_path):
    assert problems(tmp_path / "no.yaml") == [f"{tmp_path / 'no.yaml'}: cannot be read: No such file or directory"]
    assert problems(tmp_path) == [f"{tmp_path}: cannot be read: Is a directory"]
    (tmp_path / "latin.yaml").write_bytes(b"output: \xe9t\xe9\n")
    assert problems(tmp_path / "latin.yaml") == [f"{tmp_path / 'latin.yaml'}: is not UTF-8 text (byte 8)"]


def test_empty_files_and_sections(write):
    assert load_config(write(""), [], {}) == RunConfig()
    assert load_config(write("# nothing\ntrain:\nrewards:\nalgorithm:\n"), [], {}) == RunConfig()


def test_duplicate_keys(write):
    file = write("train:\n  lr: 1\n  lr: 2\ntrain: {seed: x}\n")
    assert problems(file) == [
        "run.yaml:3: key train.lr is given twice",
        "run.yaml:4: key train is given twice",
        "run.yaml:4: train.seed: must be a whole number; is 'x'",
    ]


def test_anchors(write):
    config = load_config(write("data: {train: &files [a.json], val: *files}\n"), [], {})
    assert config.data.val == ("a.json",)
    config = load_config(write("model: &x {path: a}\ntrain: {<<: {lr: 1, seed: 2}, lr: 3}\n"), [], {})
    assert (config.train.lr, config.train.seed) == (3.0, 2)
    assert problems(write("train:\n  <<: {lr: x}\n")) == ["run.yaml:1: train.lr: must be a number; is 'x'"]
    assert problems(write("output: &x [*x]\n"))[0].startswith("run.yaml:1: output: must be text")


@pytest.mark.parametrize("text", ["train.lr", "=3", "train.=3", ".lr=3"])
def test_malformed_sets(text):
    assert problems(sets=[text]) == [f"--set {text}: must be KEY=VALUE, such as train.lr=1e-6"]


def test_sets_are_yaml():
    config = load_config(None, ["data.train=[a.json, b.json]", "train.betas=0.9,0.99", "cache.mode=off", "train.steps=null"], {})
    assert config.data.train == ("a.json", "b.json")
    assert (config.train.betas, config.cache.mode, config.train.steps) == ((0.9, 0.99), "off", None)
    assert load_config(None, ["train={lr: 1e-3, seed: 4}"], {}).train.seed == 4
    assert problems(sets=["data.train=[a"]) == ["--set data.train: '[a' is no valid YAML; quotes may help"]


@pytest.mark.parametrize("value", ["2024-01-31", "007", "1e3", "true", "~", "a=b"])
def test_text_stays_as_it_is_typed(value):
    assert load_config(None, [f"output={value}"], {}).output == value


def test_sets_reach_into_short_forms(write):
    file = write("algorithm: grpo\nrewards: [mcq, temporal_iou]\n")
    config = load_config(file, ["algorithm.options.clip_high=0.3", "rewards.mcq.weight=2"], {})
    assert config.algorithm == PluginChoice(name="grpo", options={"clip_high": 0.3})
    assert config.rewards == {"mcq": RewardChoice(weight=2.0), "temporal_iou": RewardChoice()}
    assert problems(file, ["output=x", "output.y=1"]) == ["--set output.y: output is 'x', which has no settings of its own"]


def test_a_file_as_a_reward_can_be_set():
    config = load_config(None, ["rewards.some/mine.py:Mine.weight=2", "rewards.mcq.clock=true"], {})
    assert config.rewards == {"some/mine.py:Mine": RewardChoice(weight=2.0), "mcq": RewardChoice(options={"clock": True})}


def test_flags_choose_rewards_and_keep_what_is_described(write):
    file = write("rewards:\n  mcq: {weight: 2}\n  ocr: {weight: x}\n  temporal_iou: {clock: false}\n")
    config = load_config(file, ["rewards.mcq.tolerance=1"], {"rewards": "temporal_iou, math,mcq"})
    assert list(config.rewards.items()) == [
        ("temporal_iou", RewardChoice(options={"clock": False})),
        ("math", RewardChoice()),
        ("mcq", RewardChoice(weight=2.0, options={"tolerance": 1})),
    ]
    assert problems(flags={"rewards": "mcq,mcq"}) == ["--rewards: names 'mcq' twice"]
    assert problems(file, [], {"rewards": "ocr"}) == ["run.yaml:3: rewards.ocr.weight: must be a number; is 'x'"]


def test_a_flag_keeps_the_options_of_the_same_algorithm_alone(write):
    file = write("algorithm: {name: grpo, options: {clip_high: 0.3}}\n")
    assert load_config(file, [], {"algorithm": "grpo"}).algorithm.options == {"clip_high": 0.3}
    assert load_config(file, [], {"algorithm": "sft"}).algorithm == PluginChoice(name="sft")
    assert load_config(write("algorithm: {options: {a: 1}}\n"), [], {"algorithm": "grpo"}).algorithm.options == {"a": 1}


def test_an_unknown_algorithm_has_its_place(write):
    assert problems(write("train: {}\nalgorithm: grop\n"))[0].startswith("run.yaml:2: no algorithm 'grop'; did you mean 'grpo'?")
    assert problems(flags={"algorithm": "grop"})[0].startswith("--algo: no algorithm 'grop'; did you mean 'grpo'?")


def test_problems_are_returned_beside_what_is_usable():
    loaded = load(None, ["train.lr=x", "train.seed=3"], {})
    assert (loaded.config.train.lr, loaded.config.train.seed) == (1e-6, 3)
    assert [problem.path for problem in loaded.problems] == [("train", "lr")]


numbers = st.floats(min_value=1e-12, max_value=1e6)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)


@settings(max_examples=40, deadline=None)
@given(
    lr=numbers, output=names, seed=st.integers(0, 2**70), files=st.lists(names, max_size=3), options=st.dictionaries(names, numbers)
)
def test_resolved_settings_read_back_the_same(tmp_path_factory, lr, output, seed, files, options):
    values = {
        "output": output,
        "train": {"lr": lr, "seed": seed},
        "data": {"train": files},
        "rewards": {"mcq": {"options": options}},
    }
    file = tmp_path_factory.mktemp("config") / "run.yaml"
    file.write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    config = load_config(file, [], {})
    assert (config.output, config.train.lr, config.data.train) == (output, lr, tuple(files))
    file.write_text(yaml.safe_dump(resolved(config), sort_keys=False), encoding="utf-8")
    assert load_config(file, [], {}) == config
