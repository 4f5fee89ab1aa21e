import textwrap

import pytest

from evr1_core.api import ConfigError, PluginError, PluginLoadError, RewardInput, UnknownPluginError
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.loading import build_plugin, load_class, options_of, resolve
from evr1_core.testing import sample

BROKEN = {
    "raises": r"RuntimeError: the sky is falling \(.*raises\.py:1\)",
    "exits": r"SystemExit: bye",
    "needs_extra": r"No module named 'a_module_nobody_has'.*pip install 'evr1-test-broken\[heavy\]'",
    "no_module": r"ModuleNotFoundError: No module named 'evr1_test_broken\.not_there'",
    "no_class": r"AttributeError: .*'Nothing'",
    "function": r"evr1_test_broken\.rewards:function is not a subclass of evr1_core\.api\.Reward",
    "foreign": r"evr1_test_broken\.rewards:Foreign is not a subclass of evr1_core\.api\.Reward",
    "abstract": r"Abstract does not define score",
    "no_api": r"it does not say `api = 1` in its own body",
    "inherited_api": r"it does not say `api = 1` in its own body",
    "next_api": r"it was written against API 2 and evr1 0\.1\.0 offers API 1",
    "true_api": r"written against API True, not a number,",
    "field_api": r"not a number,",
    "no_attrs": r"NoAttrs is no attrs class; write @define\(kw_only=True\) above it",
    "no_tasks": r"NoTasks does not declare tasks",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_refused_with_its_distribution(install, name):
    install("broken")
    with pytest.raises(PluginLoadError, match=BROKEN[name]) as caught:
        load_class(Catalog.scan().find("rewards", name))
    assert str(caught.value).startswith(f"reward {name!r} (evr1-test-broken 0.2) cannot be loaded: ")
    error = caught.value
    assert (error.group, error.name, error.dist, error.version) == ("rewards", name, "evr1-test-broken", "0.2")
    assert error.cause


def test_the_original_exception_is_kept(install):
    install("broken")
    with pytest.raises(PluginLoadError) as caught:
        load_class(Catalog.scan().find("rewards", "raises"))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_broken_plugins_do_not_touch_others(install):
    install("broken", "good", "old")
    assert load_class(Catalog.scan().find("rewards", "shout")).__name__ == "Shout"


def test_an_unmet_requirement_is_refused_without_importing(install):
    install("old")
    with pytest.raises(
        PluginLoadError, match=r"'vintage' \(evr1-test-old 0\.9\) cannot be loaded: needs evr1<0\.1, this is 0\.1\.0"
    ):
        load_class(Catalog.scan().find("rewards", "vintage"))


def test_a_disabled_distribution_is_refused(install, monkeypatch):
    install("good")
    monkeypatch.setenv("EVR1_DISABLE", "evr1_test_good")
    with pytest.raises(PluginLoadError, match=r"disabled by EVR1_DISABLE"):
        load_class(Catalog.scan().find("rewards", "shout"))


def test_a_reward_under_the_name_of_a_benchmark_is_refused(install):
    install("broken")
    with pytest.raises(PluginLoadError, match=r"FailsToBuild is not a subclass of evr1_core\.api\.Benchmark"):
        load_class(Catalog.scan().find("benchmarks", "too_early"))


def test_both_sides_of_a_clash_load_by_their_full_names(install):
    install("clash", "good")
    catalog = Catalog.scan()
    assert load_class(catalog.find("rewards", "evr1-test-clash/shout")).__name__ == "Other"
    assert load_class(catalog.find("rewards", "evr1-test-good/shout")).__name__ == "Shout"


def test_options_become_fields(install):
    install("good")
    reward = build_plugin("rewards", "shout", {"floor": 0.25, "words": ["Yes"]}, place="rewards.shout")
    assert (reward.floor, reward.words) == (0.25, ("Yes",))
    item = RewardInput(sample=sample("shouting", "hey"), response="", answer="yes")
    assert reward.score(item).accuracy == 0.25


def test_wrong_options_carry_place_and_nearest_name(install):
    install("good")
    with pytest.raises(ConfigError) as caught:
        build_plugin("rewards", "shout", {"flor": 1, "floor": "high"}, place="rewards.shout")
    unknown, wrong = sorted(caught.value.problems, reverse=True)
    assert unknown == "unknown key rewards.shout.flor; did you mean rewards.shout.floor?"
    assert wrong.startswith("rewards.shout.floor: must be a number")
    with pytest.raises(ConfigError, match=r"rewards\.shout\.floor: must be at least 0"):
        build_plugin("rewards", "shout", {"floor": -1.0}, place="rewards.shout")


def test_an_exception_while_building_names_the_distribution(install):
    install("broken")
    expected = r"^--rewards: reward 'fails_to_build' \(evr1-test-broken 0\.2\) cannot be built: RuntimeError: no such device"
    with pytest.raises(PluginLoadError, match=expected):
        build_plugin("rewards", "fails_to_build", {}, place="--rewards")


def test_the_place_stands_before_an_unknown_name():
    with pytest.raises(UnknownPluginError, match=r"^--rewards: no reward 'mqc'; did you mean 'mcq'\?"):
        build_plugin("rewards", "mqc", {}, place="--rewards")


FILE = '''
from attrs import define, field
from evr1_core.api import Reward, RewardInput, RewardResult


@define(kw_only=True)
class Mine(Reward):
    """From a file."""

    api = 1
    tasks = frozenset({"mine"})
    value: float = field(default=0.5, metadata={"help": "what all get"})
    names: list[str] = field(factory=list)

    def score(self, item):
        return RewardResult(accuracy=self.value, parsed=True)
'''


def test_a_class_from_a_file(tmp_path):
    path = tmp_path / "my rewards.py"
    path.write_text(FILE)
    name = f"{path}:Mine"
    reward = build_plugin("rewards", name, {"value": 0.75}, place="--rewards")
    assert reward.value == 0.75
    assert type(reward) is load_class(resolve("rewards", name))  # the module runs once
    assert str(resolve("rewards", name)) == f"reward {name!r} (a file)"


def test_a_file_is_relative_to_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    assert load_class(resolve("rewards", "mine.py:Mine")).__name__ == "Mine"


def test_what_can_be_wrong_with_a_file(tmp_path):
    path = tmp_path / "mine.py"
    with pytest.raises(PluginError, match=r"there is no file .*mine\.py"):
        resolve("rewards", f"{path}:Mine")
    path.write_text("def broken(:\n")
    with pytest.raises(PluginLoadError, match=r"SyntaxError"):
        load_class(resolve("rewards", f"{path}:Mine"))
    path.write_text(textwrap.dedent(FILE))  # a file that failed is read again
    with pytest.raises(PluginLoadError, match=r"no attribute 'Other'"):
        load_class(resolve("rewards", f"{path}:Other"))
    with pytest.raises(PluginLoadError, match=r"not a subclass of evr1_core\.api\.Algorithm"):
        load_class(resolve("algorithms", f"{path}:Mine"))


def test_options_are_described(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    assert options_of(load_class(resolve("rewards", f"{path}:Mine"))) == [
        ("value", "float", "default 0.5", "what all get"),
        ("names", "list[str]", "default []", ""),
    ]
