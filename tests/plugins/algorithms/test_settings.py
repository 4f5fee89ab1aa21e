"""Options, presets, and settings of a run that make no sense with an algorithm: each is refused, and the message says why."""

from __future__ import annotations

import pytest

from evr1_core.api import ConfigError
from evr1_core.config.checks import check
from evr1_core.config.sources import load

BASE = ["rewards=mcq", "model.path=m", "data.train=t.jsonl"]
ALGORITHMS = [
    *("grpo", "dapo", "dr_grpo", "gspo", "cispo", "rloo", "opo", "remax", "reinforce_pp", "reinforce_pp_baseline"),
    *("gdpo", "ppo", "luffy", "grpo_passk"),
]
IN_GROUPS = [name for name in ALGORITHMS if name not in ("remax", "reinforce_pp", "ppo")]


def checked(name, *sets):
    return check(load(None, [*BASE, f"algorithm={name}", *sets], {}), files=False)


def refusal(name, *sets):
    with pytest.raises(ConfigError) as caught:
        checked(name, *sets)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", ALGORITHMS)
def test_switching_is_one_word(name):
    assert checked(name).algorithm.name == name


@pytest.mark.parametrize("name", IN_GROUPS)
def test_a_group_of_one_compares_with_nobody(name):
    assert f"{name} compares the responses to a prompt and needs 2 or more; is 1" in refusal(name, "rollout.n=1")


@pytest.mark.parametrize("name", ["remax", "reinforce_pp", "ppo"])
def test_a_single_response_is_enough_for_some(name):
    assert checked(name, "rollout.n=1").rollout.n == 1


REFUSED = {
    ("grpo", "clip_low=1.5"): "clip_low: must be at most 1",
    ("grpo", "clip_high=-0.1"): "clip_high: must be at least 0",
    ("grpo", "dual_clip=1.2"): "dual_clip must be above 1 + clip_high = 1.28; is 1.2",
    ("grpo", "aggregation=mean"): "aggregation: must be one of token-mean, seq-mean-token-mean",
    ("grpo", "off_mode=sft"): "off_mode: must be one of on_policy, luffy, is",
    ("grpo", "off_gamma=0"): "off_gamma: must be above 0",
    ("grpo", "baseline_rows=offline"): "baseline_rows: must be one of all, online",
    ("gspo", "aggregation=token-mean"): "must be seq-mean-token-mean, since any other weighs responses by length",
    ("gspo", "dual_clip=3"): "unknown key algorithm.options.dual_clip",
    ("cispo", "dual_clip=3"): "unknown key algorithm.options.dual_clip",
    ("gdpo", "level=batch"): "level: must be one of seq, token",
    ("gdpo", "weights={}"): "weights must name components",
    ("gdpo", "weights={accuracy: 0}"): "one of them not 0",
    ("reinforce_pp", "gamma=1.5"): "gamma: must be at most 1",
    ("ppo", "lam=-1"): "lam: must be at least 0",
}


@pytest.mark.parametrize(("name", "option"), REFUSED)
def test_options_have_checks(name, option):
    assert REFUSED[name, option] in refusal(name, f"algorithm.options.{option}")


@pytest.mark.parametrize(
    ("name", "sets", "said"),
    [
        ("gdpo", ("kl.place=reward",), "kl.place: gdpo compares raw components, so a penalty on the reward would be lost"),
        ("gdpo", ("reward.overlong_buffer=64",), "gdpo would ignore the penalty: name `overlong`"),
        ("luffy", ("mix.enabled=false",), "mix.enabled: luffy learns from groups that hold a stored trajectory"),
        ("grpo", ("kl.place=loss", "kl.kind=full"), "kl.kind: full needs the logits of both models at every token"),
        ("grpo", ("kl.place=both",), "kl.place: must be one of off, loss, reward"),
        ("grpo", ("correction.low=3",), "correction.low: is 3.0, more than correction.high = 2.0"),
        ("grpo", ("filter.low=0.9", "filter.high=0.1"), "filter.low: must be below filter.high = 0.1"),
        ("sft", ("kl.place=reward",), "kl.place: sft has no rewards that a penalty could be taken off"),
        ("sft", ("filter.dynamic=true",), "filter.dynamic: sft samples nothing"),
        ("sft", ("mix.enabled=true",), "mix.enabled: sft samples nothing"),
    ],
)
def test_settings_that_contradict_the_algorithm(name, sets, said):
    assert said in refusal(name, *sets)


def test_gdpo_takes_the_length_penalty_as_a_component():
    options = "algorithm.options.weights={accuracy: 1, overlong: 0.5}"
    assert checked("gdpo", "reward.overlong_buffer=64", options).reward.overlong_buffer == 64


@pytest.mark.parametrize(
    ("name", "presets"),
    [
        ("dapo", {("filter", "dynamic"): True, ("reward", "overlong_buffer"): 0.2}),
        ("luffy", {("mix", "enabled"): True}),
        ("reinforce_pp", {("kl", "kind"): "k1", ("kl", "place"): "off"}),
        ("reinforce_pp_baseline", {("kl", "kind"): "k2", ("kl", "place"): "off"}),
    ],
)
def test_presets_are_defaults_of_other_settings(name, presets):
    config = checked(name)
    for (section, key), value in presets.items():
        assert getattr(getattr(config, section), key) == value


def test_a_preset_gives_way_to_a_setting():
    assert checked("dapo", "filter.dynamic=false").filter.dynamic is False


def test_clips_made_for_tokens_are_warned_about():
    with pytest.warns(UserWarning, match=r"gspo: clip_low = 0.2, clip_high = 0.28"):
        checked("gspo", "algorithm.options.clip_low=0.2", "algorithm.options.clip_high=0.28")
