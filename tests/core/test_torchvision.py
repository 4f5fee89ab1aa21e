import subprocess
import sys
import textwrap
from importlib.metadata import entry_points


def run(code):
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_importing_and_looking_for_torchvision_import_no_torch():
    assert (
        run("""
        import sys
        import evr1_core
        import importlib.util
        assert importlib.util.find_spec("torchvision") is not None
        assert "torch" not in sys.modules and "torchvision" not in sys.modules
        assert not evr1_core._torchvision.active()
    """)
        == []
    )


def test_torchvision_and_the_processors_import():
    assert (
        run("""
        import evr1_core
        import torchvision
        assert type(torchvision.__spec__.loader).__name__ == type(torchvision.__loader__).__name__ == "SourceFileLoader"
        import torch
        from torchvision.transforms.v2 import functional as F
        assert F.resize(torch.zeros(3, 8, 8, dtype=torch.uint8), [4, 4], antialias=True).shape == (3, 4, 4)
        from transformers import AutoProcessor, Qwen3VLProcessor
        assert evr1_core._torchvision.active() != torchvision.extension._has_ops()
        evr1_core._torchvision.install()  # too late, and harmless
    """)
        == []
    )


def fake_torchvision(folder, library):
    """A package called torchvision that prints whether the two operators are there, with or without a file for its extension."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import torch\nprint(hasattr(torch.ops.torchvision, 'nms'), hasattr(torch.ops.torchvision, 'qnms'))\n"
    )
    if library is not None:
        (package / "_C.so").write_bytes(library)
    return f"import sys; sys.path.insert(0, {str(folder)!r})\n"


def test_the_operators_are_declared_when_the_extension_does_not_load(tmp_path):
    path = fake_torchvision(tmp_path, b"not a library")
    assert run(path + "import evr1_core, torchvision\nprint(evr1_core._torchvision.active())") == ["True", "True", "True"]


def test_nothing_is_declared_when_the_extension_loads(tmp_path):
    path = fake_torchvision(tmp_path, None)
    target = tmp_path / "torchvision" / "_C.so"
    code = f"""
import _ctypes, shutil, evr1_core
shutil.copy(_ctypes.__file__, {str(target)!r})  # any library that loads
import torchvision
print(evr1_core._torchvision.active())
"""
    assert run(path + code) == ["False", "False", "False"]


def test_vllm_installs_the_hook_in_its_own_processes():
    (entry,) = [each for each in entry_points(group="vllm.general_plugins") if each.dist is not None and each.dist.name == "evr1"]
    from evr1_core import _torchvision

    assert entry.load() is _torchvision.install
    before = list(sys.meta_path)
    _torchvision.install()
    assert sys.meta_path == before  # once is enough
