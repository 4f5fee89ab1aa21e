from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import pytest
from attrs import define, field, frozen, validators

from evr1_core.api import ConfigError
from evr1_core.config.build import build, build_partly, leaves
from evr1_core.config.schema import PluginChoice, RewardChoice


@frozen(kw_only=True)
class Inner:
    size: int = field(default=1, validator=validators.gt(0))
    names: tuple[str, ...] = ()


@frozen(kw_only=True)
class Outer:
    count: int = 0
    rate: float = field(default=0.5, validator=validators.and_(validators.ge(0.0), validators.le(1.0)))
    name: str = ""
    on: bool = False
    mode: Literal["prefer", "only", "off"] = "prefer"
    level: Literal[0, 1] = 0
    pair: tuple[float, float] = (0.0, 1.0)
    limit: int | None = None
    where: Path = Path()
    free: Any = None
    by_name: Mapping[str, int] = field(factory=dict)
    parts: Mapping[str, Inner] = field(factory=dict)
    inner: Inner = field(factory=Inner)
    tags: frozenset[str] = frozenset()
    either: int | str = 0
    loose: tuple = ()
    noted: Annotated[int, "a note"] = 0


def problems(values, cls=Outer, **kwargs):
    with pytest.raises(ConfigError) as caught:
        build(cls, values, **kwargs)
    return list(caught.value.problems)


GOOD = [
    ("count", 3, 3),
    ("count", "3", 3),
    ("rate", 1, 1.0),
    ("rate", "1e-6", 1e-6),
    ("rate", "0.25", 0.25),
    ("name", "", ""),
    ("on", True, True),
    ("mode", "only", "only"),
    ("mode", False, "off"),  # what YAML makes of `mode: off`
    ("level", 1, 1),
    ("pair", [1, "2e-1"], (1.0, 0.2)),
    ("pair", "1,2", (1.0, 2.0)),
    ("limit", None, None),
    ("limit", 4, 4),
    ("where", "a/b", Path("a/b")),
    ("free", {"a": [1, None]}, {"a": [1, None]}),
    ("by_name", {"a": "1"}, {"a": 1}),
    ("parts", {"a": {"size": 2}, "b": None}, {"a": Inner(size=2), "b": Inner()}),
    ("parts", ["a", "b"], {"a": Inner(), "b": Inner()}),
    ("parts", "a, b", {"a": Inner(), "b": Inner()}),
    ("parts", ["a", {"b": {"size": 3}}], {"a": Inner(), "b": Inner(size=3)}),
    ("inner", None, Inner()),
    ("inner", {"names": ["x", "y"]}, Inner(names=("x", "y"))),
    ("inner", {"names": "x,y"}, Inner(names=("x", "y"))),
    ("tags", ["x", "x"], frozenset({"x"})),
    ("either", 3, 3),
    ("either", "3", "3"),
    ("either", "x", "x"),
    ("loose", [1, "a"], (1, "a")),
    ("noted", "7", 7),
]


@pytest.mark.parametrize(("key", "value", "expected"), GOOD)
def test_values_become_what_the_field_declares(key, value, expected):
    got = getattr(build(Outer, {key: value}), key)
    assert got == expected
    assert type(got) is type(expected)


BAD = [
    ("count", True, "count: must be a whole number; is True"),
    ("count", 3.0, "count: must be a whole number; is 3.0"),
    ("count", "1e3", "count: must be a whole number; is '1e3'"),
    ("count", None, "count: must be a whole number; is nothing"),
    ("rate", False, "rate: must be a number; is False"),
    ("rate", "fast", "rate: must be a number; is 'fast'"),
    ("rate", float("nan"), "rate: must be a number; is nan"),
    ("rate", "inf", "rate: must be a number; is 'inf'"),
    ("rate", "9" * 500, None),
    ("rate", -1, "rate: must be at least 0.0; is -1.0"),
    ("rate", 2, "rate: must be at most 1.0; is 2.0"),
    ("name", 3, "name: must be text; is 3; put it in quotes"),
    ("name", True, "name: must be text; is True; put it in quotes"),
    ("on", 1, "on: must be true or false; is 1"),
    ("on", "yes", "on: must be true or false; is 'yes'"),
    ("mode", "prefr", "mode: must be one of prefer, only, off; is 'prefr'; did you mean prefer?"),
    ("mode", True, "mode: must be one of prefer, only, off; is True"),
    ("level", True, "level: must be one of 0, 1; is True"),
    ("pair", [1], "pair: must be a list of 2 values; is [1]"),
    ("pair", [1, "x"], "pair: must be a number; is 'x'"),
    ("limit", "many", "limit: must be a whole number; is 'many'"),
    ("by_name", ["a"], "by_name: must be a mapping; is ['a']"),
    ("by_name", {"a": "x"}, "by_name.a: must be a whole number; is 'x'"),
    ("parts", ["a", "a"], "parts: names a twice"),
    ("parts", ["a", 3], "parts: must be names, or a mapping by name; holds 3"),
    ("parts", 3, "parts: must be a mapping; is 3"),
    ("inner", 3, "inner: must be a mapping of settings; is 3"),
    ("inner", {"size": 0}, "inner.size: must be above 0; is 0"),
    ("tags", 3, "tags: must be a list; is 3"),
    ("either", 1.5, "either: must be text; is 1.5; put it in quotes"),
]


@pytest.mark.parametrize(("key", "value", "expected"), BAD)
def test_nothing_is_guessed(key, value, expected):
    found = problems({key: value})
    assert len(found) == 1
    assert expected is None or found == [expected]


def test_all_problems_at_once():
    assert sorted(problems({"count": "x", "rate": 7, "inner": {"size": 0, "sise": 1}, "pair": 3})) == [
        "count: must be a whole number; is 'x'",
        "inner.size: must be above 0; is 0",
        "pair: must be a list of 2 values; is 3",
        "rate: must be at most 1.0; is 7.0",
        "unknown key inner.sise; did you mean inner.size?",
    ]


def test_every_validator_is_asked():
    @define(kw_only=True)
    class Options:
        low: float = field(default=0.2, validator=validators.ge(0))
        high: float = field(default=0.3, validator=validators.ge(0))
        kind: str = field(default="a", validator=validators.in_(("a", "b")))

    assert problems({"low": -1, "high": -2, "kind": "c"}, Options) == [
        "low: must be at least 0; is -1.0",
        "high: must be at least 0; is -2.0",
        "kind: must be one of a, b; is 'c'",
    ]


def test_a_validator_may_look_at_other_fields():
    @define(kw_only=True)
    class Options:
        clip: float = 0.2
        bound: float = field(default=3.0)

        @bound.validator
        def _above(self, _, value):
            if value <= 1 + self.clip:
                raise ValueError(f"must be above 1 + clip = {1 + self.clip:g}; is {value:g}")

    assert build(Options, {"bound": 1.5}).bound == 1.5
    assert problems({"bound": 1}, Options, place="algorithm") == ["algorithm.bound: must be above 1 + clip = 1.2; is 1"]
    assert problems({"clip": 2.5}, Options) == ["bound: must be above 1 + clip = 3.5; is 3"]  # the default is what no longer fits


def test_converters_private_fields_and_factories():
    @define(kw_only=True)
    class Options:
        words: tuple[str, ...] = field(default=("a",), converter=lambda words: tuple(word.upper() for word in words))
        twice: int = attrs.Factory(lambda self: 2 * len(self.words), takes_self=True)
        _hidden: int = field(default=5, init=False)

    built = build(Options, {"words": ["x", "y"]})
    assert (built.words, built.twice) == (("X", "Y"), 4)
    assert problems({"hidden": 1, "_hidden": 1}, Options) == [
        "unknown key hidden (known: words, twice)",
        "unknown key _hidden (known: words, twice)",
    ]


def test_what_the_whole_object_refuses_has_its_place():
    @define(kw_only=True)
    class Options:
        path: str = ""

        def __attrs_post_init__(self):
            if self.path == "x":
                raise ValueError("x is taken")

    origins = {(): "run.yaml:7", ("path",): "run.yaml:8"}
    assert problems({"path": "x"}, Options, place="rewards.mine", origins=origins) == ["run.yaml:7: rewards.mine: x is taken"]


def test_required_fields():
    @define(kw_only=True)
    class Options:
        path: str
        more: Sequence[int] = ()

    assert build(Options, {"path": "x", "more": [1]}).more == (1,)
    assert problems({"more": "a"}, Options, place="rewards.mine") == [
        "rewards.mine.path: must be given",
        "rewards.mine.more: must be a whole number; is 'a'",
    ]


def test_a_refused_object_is_not_made():
    """Making a plugin may start processes; with wrong options it is not even tried."""
    made = []

    @define(kw_only=True)
    class Options:
        size: int = field(default=1, validator=validators.gt(0))

        def __attrs_post_init__(self):
            made.append(self.size)

    for values in ({"size": "x"}, {"size": 0}, {"sise": 1}):
        problems(values, Options)
    assert made == []


def test_unknown_keys_name_the_nearest_or_the_same_elsewhere():
    assert problems({"cuont": 1}) == ["unknown key cuont; did you mean count?"]
    assert problems({"size": 1}) == ["unknown key size; did you mean inner.size?"]
    assert problems({"inner": {"zzz": 1}}) == ["unknown key inner.zzz (known: size, names)"]
    assert problems({3: 1, "zzz": 1})[0].startswith("unknown key 3 (known: count, ")


def test_places():
    origins = {("inner",): "a.yaml:1", ("inner", "size"): "--set inner.size", ("count",): "--count", ("pair",): "a.yaml:4"}
    values = {"inner": {"size": "x", "names": 3}, "count": "x", "pair": [1, "y"]}
    assert problems(values, origins=origins) == [
        "--count: must be a whole number; is 'x'",
        "a.yaml:4: pair: must be a number; is 'y'",
        "--set inner.size: must be a whole number; is 'x'",
        "a.yaml:1: inner.names: must be a list; is 3",
    ]


def test_short_forms_of_plugins():
    assert build(PluginChoice, "grpo") == PluginChoice(name="grpo")
    assert build(PluginChoice, {"name": "grpo", "options": {"clip": 1}}) == PluginChoice(name="grpo", options={"clip": 1})
    assert build(RewardChoice, {"clock": False}) == RewardChoice(options={"clock": False})
    assert build(RewardChoice, {"weight": 2, "clock": False}) == RewardChoice(weight=2.0, options={"clock": False})
    assert build(RewardChoice, {"options": {"a": 1}, "b": 2}) == RewardChoice(options={"a": 1, "b": 2})
    assert problems({"options": {"a": 1}, "a": 2}, RewardChoice) == ["a: is given twice: under `options` and beside it"]
    assert problems({"clip": 1}, PluginChoice) == ["unknown key clip (known: name, options)"]


def test_settings_with_problems_keep_their_defaults():
    values = {"count": "x", "rate": 2, "name": "ok", "inner": {"size": 0, "names": ["a"]}, "parts": {"a": {"size": "x"}}}
    built, found = build_partly(Outer, values, origins={})
    assert built == Outer(name="ok", inner=Inner(names=("a",)), parts={"a": Inner()})
    assert [problem.path for problem in found] == [("count",), ("parts", "a", "size"), ("inner", "size"), ("rate",)]
    assert build_partly(Outer, 3, origins={})[0] == Outer()


def test_leaves():
    assert leaves(Inner) == [("size",), ("names",)]
    assert ("inner", "size") in leaves(Outer)
    assert ("inner",) not in leaves(Outer)
