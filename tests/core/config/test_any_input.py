"""Whatever is written into a configuration: settings, or problems with places; never a traceback."""

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from evr1_core.api import ConfigError
from evr1_core.config.build import leaves
from evr1_core.config.checks import check
from evr1_core.config.schema import RunConfig
from evr1_core.config.sources import load, load_config

LEAVES = [".".join(path) for path in leaves(RunConfig)]
WORDS = [*{part for path in LEAVES for part in path.split(".")}, "name", "options", "weight", "grpo", "mcq", "jsonl", "x"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates() | st.sampled_from(WORDS)
values = st.recursive(
    scalars,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.integers() | st.none(), each, max_size=4),
    max_leaves=8,
)


def problems(read):
    """The problems of reading; none when the settings that come out are valid."""
    try:
        attrs.validate(read())
    except ConfigError as error:
        return error.problems
    return ()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(LEAVES + WORDS), values, max_size=4))
def test_flags(flags):
    given_flags = {key: value for key, value in flags.items() if key != "rewards"}
    assert all(problems(lambda: check(load(None, [], given_flags), files=False)))


@settings(max_examples=60, deadline=None)
@given(st.text() | st.sampled_from(LEAVES).flatmap(lambda key: st.text().map(lambda text: f"{key}={text}")))
def test_sets(text):
    assert all(problem.startswith("--set ") for problem in problems(lambda: load_config(None, [text], {})))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text("-:[]{}&*!|>'\"#,?% \n\tab01<", max_size=40).map(str.encode))
def test_files(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(content)
    assert all(problem.startswith(str(file)) for problem in problems(lambda: load_config(file, [], {})))
