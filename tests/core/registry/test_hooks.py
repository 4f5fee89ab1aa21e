import logging
import sys

import pytest

from evr1_core.api import HookError, PluginLoadError, ProblemsError
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.hooks import load_hooks, load_listener
from evr1_core.testing import sample

BROKEN = {
    "hook_raises": "RuntimeError: the sky is falling",
    "hook_no_api": "it does not say `api = 1`",
    "hook_signature": "colour",
    "hook_unknown_event": "unknown hook 'evr1_step_end'",
    "hook_unmarked": "has no function marked @hookimpl",
    "hook_class": "is not a module",
    "hook_twice": "would hear every event twice",
}


def test_listeners_hear_events_and_their_sets_come_back(install, monkeypatch):
    install("good")
    monkeypatch.setenv("EVR1_TEST_DROP", "testing/ocr")
    hooks = load_hooks()
    assert hooks.names == ("evr1-test-good:journal 0.3",)
    assert hooks.notes == ()
    samples = [sample("ocr", "EXIT"), sample("math", "1")]
    assert hooks.call("evr1_drop_samples", samples=samples, split="train") == [{"testing/ocr"}]
    assert hooks.call("evr1_run_started", config={}, folder=None) == []
    assert hooks.call("evr1_drop_groups", step=1, batch=None) == []  # nobody listens
    assert sys.modules["evr1_test_good_listener"].HEARD == ["train 2", "started"]


def test_an_exception_in_a_listener_names_its_distribution(install):
    install("good")
    hooks = load_hooks()
    with pytest.raises(HookError) as caught:
        hooks.call("evr1_step_ended", step=13, metrics={})
    text = str(caught.value)
    assert text.startswith("listener 'journal' (evr1-test-good 0.3) failed in evr1_step_ended: ZeroDivisionError: unlucky step")
    assert "EVR1_DISABLE=evr1-test-good leaves it out" in text
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_drop_that_is_no_set_is_refused(install):
    install("broken")
    hooks = load_hooks()
    with pytest.raises(HookError, match=r"evr1-test-broken 0\.2\): evr1_drop_samples answered with a list; a set or None"):
        hooks.call("evr1_drop_samples", samples=[], split="train")


def test_broken_listeners_are_left_out_warned_about_and_noted(install, caplog):
    install("broken", "good", "old")
    with caplog.at_level(logging.WARNING, logger="evr1"):
        hooks = load_hooks()
    assert hooks.names == ("evr1-test-broken:hook_list 0.2", "evr1-test-good:journal 0.3")
    assert len(hooks.notes) == len(BROKEN) + 1
    for name, cause in BROKEN.items():
        (note,) = [note for note in hooks.notes if note.startswith(f"listener {name!r} (evr1-test-broken 0.2) cannot be loaded: ")]
        assert cause in note
    assert any("'gramophone' (evr1-test-old 0.9) cannot be loaded: needs evr1<0.1" in note for note in hooks.notes)
    assert len(caplog.records) == len(hooks.notes)
    hooks.call("evr1_step_ended", step=1, metrics={})  # the function with the wrong signature is gone
    hooks.call("evr1_run_started", config={}, folder=None)  # and so are its good ones


def test_strict_makes_all_of_them_one_error(install):
    install("broken", "old")
    with pytest.raises(ProblemsError) as caught:
        load_hooks(strict=True)
    assert len(caught.value.problems) == len(BROKEN) + 1


def test_strict_with_good_listeners_is_no_error(install):
    install("good")
    assert load_hooks(strict=True).notes == ()


def test_disabled_distributions_are_noted_and_never_imported(install, monkeypatch):
    install("broken", "good")
    monkeypatch.setenv("EVR1_DISABLE", "evr1_test.broken, evr1-nobody")
    hooks = load_hooks(strict=True)
    assert hooks.names == ("evr1-test-good:journal 0.3",)
    assert hooks.notes == (
        "EVR1_DISABLE names evr1-nobody, which has no plugins here",
        "evr1-test-broken is disabled by EVR1_DISABLE",
    )
    assert "evr1_test_broken" not in sys.modules


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "hook_twice"])
def test_one_broken_listener_is_an_error_when_it_is_asked_for(install, name):
    install("broken")
    with pytest.raises(PluginLoadError, match=BROKEN[name].replace("(", r"\(")):
        load_listener(Catalog.scan().find("hooks", name))


def test_a_wrapper_is_refused(tmp_path, monkeypatch, install):
    install("good")
    import evr1_test_good_listener as module

    from evr1_core.api import hookimpl

    @hookimpl(wrapper=True)
    def evr1_step_ended(step, metrics):
        return (yield)

    monkeypatch.setattr(module, "evr1_step_ended", evr1_step_ended)
    with pytest.raises(PluginLoadError, match="is a wrapper"):
        load_listener(Catalog.scan().find("hooks", "journal"))
