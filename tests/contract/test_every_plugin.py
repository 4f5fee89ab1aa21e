"""Every installed plugin keeps the contract of its group: those of evr1 and of whatever else is installed."""

from importlib.util import find_spec

import pytest

from evr1_core.api import BenchmarkPaths, DataError
from evr1_core.registry.catalog import Catalog
from evr1_core.registry.hooks import load_listener
from evr1_core.registry.loading import load_class, options_of
from evr1_core.testing import SAMPLES, check_algorithm, check_engine, check_model_family, check_reward, check_tracker

CATALOG = Catalog.scan()
CLASSES = [ref for ref in CATALOG.refs if ref.group != "hooks"]


def of(group):
    return [pytest.param(ref, id=f"{ref.dist}/{ref.name}") for ref in CATALOG.group(group)]


@pytest.mark.parametrize("ref", [pytest.param(ref, id=f"{ref.group}/{ref.dist}/{ref.name}") for ref in CLASSES])
def test_it_loads_and_describes_itself(ref):
    assert CATALOG.problem(ref) is None
    cls = load_class(ref)
    assert (cls.__doc__ or "").strip(), "it has no docstring"
    for option, kind, _, help_text in options_of(cls):
        assert help_text or ref.dist != "evr1", f"option {option} ({kind}) has no help"
        assert not option.startswith("_"), f"option {option} is private; write init=False"
    cls()  # every option has a default


@pytest.mark.parametrize("ref", of("rewards"))
def test_rewards(ref):
    reward = load_class(ref)()
    try:
        known = [SAMPLES[task] for task in sorted(reward.tasks) if task in SAMPLES]
        assert len(known) == len(reward.tasks) or ref.dist != "evr1", (
            f"no made-up record for {sorted(reward.tasks - SAMPLES.keys())}"
        )
        check_reward(reward, samples=known)
    finally:
        reward.close()


@pytest.mark.parametrize("ref", of("benchmarks"))
def test_benchmarks(ref, tmp_path):
    """What needs no records; tests of the plugin's own call check_benchmark with some."""
    benchmark = load_class(ref)()
    assert benchmark.id == ref.name
    assert benchmark.size > 0
    assert benchmark.metrics
    assert benchmark.files(BenchmarkPaths(folder=tmp_path / ref.name)) == ()
    with pytest.raises(DataError, match=f"{ref.name}: there are no annotations"):
        list(benchmark.load(BenchmarkPaths(folder=tmp_path / ref.name)))


@pytest.mark.parametrize("ref", of("algorithms"))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_algorithms(ref, seed):
    check_algorithm(load_class(ref)(), seed=seed)


@pytest.mark.parametrize("ref", of("trackers"))
def test_trackers(ref, tmp_path):
    check_tracker(load_class(ref)(), tmp_path / "run")


@pytest.mark.parametrize("ref", of("models"))
def test_model_families(ref, tmp_path):
    check_model_family(load_class(ref)(), tmp_path / "tiny")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model family and the folder of its tiny checkpoint."""
    family = load_class(CATALOG.find("models", "evr1/qwen3_vl"))()
    folder = tmp_path_factory.mktemp("tiny")
    family.tiny(folder, seed=0)
    return family, folder


@pytest.mark.parametrize("ref", [param for param in of("engines") if param.id != "evr1/vllm"])
def test_engines(ref, tiny):
    family, folder = tiny
    check_engine(load_class(ref)(), family, folder)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed (make setup-vllm)")
def test_vllm(tiny):
    family, folder = tiny
    engine = load_class(CATALOG.find("engines", "evr1/vllm"))(enforce_eager=True, max_model_len=2048, cache_gb=0.5)
    check_engine(engine, family, folder)


@pytest.mark.parametrize("ref", of("hooks"))
def test_listeners(ref):
    assert load_listener(ref).__doc__
