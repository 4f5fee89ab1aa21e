import pytest

from evr1_core.doctor import imports
from evr1_core.doctor.imports import Imports

GOOD = {
    "av": {"ffmpeg": "8.1.2", "missing": []},
    "torch": {"built_for": None, "devices": []},
    "torchvision": {"version": "0.28.0", "hook": False},
    "transformers": {"version": "5.19.0", "processor": "AutoProcessor"},
}


def seen(found=(), failed=()):
    failed = dict(failed)
    return Imports({name: value for name, value in {**GOOD, **dict(found)}.items() if name not in failed}, failed)


def rows(findings):
    return {each.name: each for each in findings}


def test_everything_is_imported_here():
    import torchvision  # noqa: F401

    import evr1_core._torchvision

    tried = imports.tried(["av", "torch", "torchvision", "transformers"])
    assert tried.failed == {}
    assert tried.found["torchvision"]["hook"] == evr1_core._torchvision.active()
    assert tried.found["av"]["missing"] == []


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Modules that stand before the real ones in the probe's process."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def put(name, source):
        (tmp_path / f"{name}.py").write_text(source)

    return put


def test_a_package_that_fails_does_not_keep_the_others_from_being_tried(fake):
    fake("av", "raise OSError('libavcodec.so.62: cannot open shared object file')")
    fake("torch", "import os, signal\nprint('noise')\nos.kill(os.getpid(), signal.SIGILL)")  # as a build for other processors does
    fake("torchvision", "__version__ = '9'")
    tried = imports.tried(["av", "torch", "torchvision"])
    assert tried.failed == {
        "av": "OSError: libavcodec.so.62: cannot open shared object file",
        "torch": "the process was ended by signal 4",
    }
    assert tried.found == {"torchvision": {"version": "9", "hook": False}}


def test_a_package_that_does_not_come_back(fake, monkeypatch):
    monkeypatch.setattr(imports, "LIMIT", 2.0)
    fake("av", "import time\ntime.sleep(60)")
    assert imports.tried(["av"]).failed == {"av": "it was not done after 2 seconds"}


def test_torchvision_states():
    assert rows(imports.imported(seen()))["torchvision"].value == "its compiled extension is loaded"
    hooked = rows(imports.imported(seen({"torchvision": {"version": "0", "hook": True}})))["torchvision"]
    assert hooked.level == "note"
    assert "import hook is active" in hooked.value


def test_what_cannot_be_imported_would_stop_a_run(monkeypatch):
    monkeypatch.setattr(imports, "installed", lambda name: "2.9" if name == "torchaudio" else None)
    found = rows(
        imports.imported(seen(failed={"transformers": "OSError: libcudart", "torch": "x", "torchvision": "y", "vllm": "z"}))
    )
    assert {each.level for each in found.values()} == {"stop"}
    assert found["transformers"].value == "cannot be imported: OSError: libcudart"
    assert found["transformers"].advice == "pip uninstall torchaudio"
    assert set(found) == {"torch", "torchvision", "transformers", "vllm"}


def test_vllm_says_what_it_runs_on():
    assert rows(imports.imported(seen({"vllm": {"platform": "cpu"}})))["vllm"].value == "imported; it runs on: cpu"


def test_media():
    assert rows(imports.media(seen()))["av"].value.endswith("with FFmpeg 8.1.2")
    found = rows(imports.media(seen({"av": {"ffmpeg": "4.4", "missing": ["AV1", "VP9"]}})))
    assert (found["codecs"].level, found["codecs"].value) == ("note", "this FFmpeg does not decode AV1, VP9")
    assert rows(imports.media(seen(failed={"av": "ImportError: x"})))["av"].level == "stop"


def test_the_ffmpeg_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rows(imports.media(seen()))["ffmpeg command"].value.startswith("not installed")
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\necho ffmpeg version 7.1\necho built with\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    assert rows(imports.media(seen()))["ffmpeg command"].value == "ffmpeg version 7.1"
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\nexit 3\n")
    assert "returned non-zero exit status 3" in rows(imports.media(seen()))["ffmpeg command"].value


GPU = {"built_for": "13.0", "devices": [{"name": "H200", "free": 138 << 30, "total": 140 << 30}]}


def test_devices(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    driver = tmp_path / "version"
    assert [each.value for each in imports.devices(seen(), driver)] == ["none: models run on the CPU"]
    assert [each.value for each in imports.devices(seen(failed={"torch": "x"}), driver)] == ["unknown: torch cannot be imported"]
    driver.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1\nGCC version: 12\n")
    good = list(imports.devices(seen({"torch": GPU}), driver))
    assert [each.value for each in good] == [
        "H200, 140.0 GiB, 138.0 GiB of it free",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1",
    ]
    assert rows(imports.devices(seen(), driver))["GPU"].level == "note"  # a build for CPUs beside a GPU
    unusable = rows(imports.devices(seen({"torch": {"built_for": "13.0", "devices": []}}), driver))["GPU"]
    assert unusable.level == "stop"
    assert "built for CUDA 13.0, can use none" in unusable.value


def test_the_driver_by_its_own_command(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 570.86.15\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert rows(imports.devices(seen({"torch": GPU}), tmp_path / "none"))["driver"].value == "NVIDIA 570.86.15"
