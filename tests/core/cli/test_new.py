import os
import subprocess
import sys
import tomllib

import pytest

from evr1_core.cli.main import main


@pytest.mark.parametrize("kind", ["reward", "benchmark", "algorithm", "model"])
def test_it_writes_a_package(tmp_path, kind, capsys):
    assert main(["new", kind, "big_idea", "--dir", str(tmp_path)]) == 0
    folder = tmp_path / f"evr1-{kind}-big-idea"
    assert str(folder) in capsys.readouterr().out
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {f"evr1.{kind}s": {"big_idea": f"evr1_{kind}_big_idea:BigIdea"}}
    assert project["project"]["dependencies"] == ["evr1>=0.1,<0.2"]
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == [f"evr1_{kind}_big_idea.py", "pyproject.toml", f"tests/test_evr1_{kind}_big_idea.py"]


@pytest.mark.parametrize("name", ["Foo", "1st", "a-b", "a/b", "../x", "", "a b"])
def test_bad_names_write_nothing(tmp_path, name, capsys):
    assert main(["new", "reward", name, "--dir", str(tmp_path)]) == 2
    assert f"{name!r} is no plugin name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path, capsys):
    (tmp_path / "evr1-reward-foo").mkdir()
    assert main(["new", "reward", "foo", "--dir", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["new", "reward", "foo", "--dir", str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reward", "benchmark", "algorithm", "model"])
def test_the_package_installs_passes_its_test_and_is_listed(tmp_path, kind):
    assert main(["new", kind, "big_idea", "--dir", str(tmp_path)]) == 0
    folder, site = tmp_path / f"evr1-{kind}-big-idea", tmp_path / "site"
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--quiet", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder)], check=True)
    env = {**os.environ, "PYTHONPATH": str(site)}
    for words in (
        ["pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")],
        ["evr1_core", "plugins", f"{kind}s/big_idea"],
    ):
        result = subprocess.run([sys.executable, "-m", *words], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert result.returncode == 0, result.stdout + result.stderr
    assert f"evr1-{kind}-big-idea 0.1" in result.stdout
    style = ["ruff", "format", "--check", "--line-length", "132", str(folder / "tests"), str(folder / f"evr1_{kind}_big_idea.py")]
    subprocess.run([sys.executable, "-m", *style], check=True)
