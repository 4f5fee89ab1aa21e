import pickle

import pytest

from evr1_core.api import BadGoldError, ConfigError, MediaError, PluginLoadError
from evr1_core.testing import sample

ERRORS = [
    ConfigError(["run.yaml:1: a", "run.yaml:2: b"]),
    BadGoldError(sample("ocr", "x"), "a number"),
    MediaError("a.mp4", "missing", "there is no such file"),
    PluginLoadError("reward 'x' cannot be loaded: y", group="rewards", name="x", dist="d", version="1", cause="y"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_the_way_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_messages_say_what_and_where():
    assert str(ERRORS[0]) == "run.yaml:1: a\nrun.yaml:2: b"
    assert str(ERRORS[1]) == "testing: record 'testing/ocr' (ocr): the gold answer 'x' is not a number"
    assert str(ERRORS[2]) == "a.mp4: there is no such file"
