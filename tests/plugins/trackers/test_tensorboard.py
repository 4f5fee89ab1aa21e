import importlib.util
import math

import pytest

from evr1_core.api import PluginError
from evr1_core.registry.loading import build_plugin


def test_values_can_be_read_back(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracker = build_plugin("trackers", "tensorboard", {"flush_secs": 1}, place="log.trackers")
    tracker.start({}, tmp_path, 2)
    tracker.log(1, {"critic/score/mean": 0.25, "bad": math.nan})
    tracker.log(2, {"critic/score/mean": 0.75})
    tracker.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("critic/score/mean")] == [(1, 0.25), (2, 0.75)]
    assert math.isnan(events.Scalars("bad")[0].value)


def test_a_missing_extra_is_told_before_the_run(monkeypatch):
    find = importlib.util.find_spec
    build_plugin("trackers", "tensorboard", {}, place="log.trackers")  # the module is imported while everything is there
    import evr1_plugins.trackers.tensorboard as module

    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "tensorboard" else find(name))
    with pytest.raises(PluginError, match=r"pip install 'evr1\[trackers\]', or leave it out of log\.trackers"):
        build_plugin("trackers", "tensorboard", {}, place="log.trackers")
