import importlib.metadata
import json
import sys

import pytest

from evr1_core.cli.main import main


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    """A distribution made of bare metadata and one module with a good and a broken reward."""
    info = tmp_path / "evr1_third-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evr1-third\nVersion: 1.5\nRequires-Dist: evr1\n")
    (info / "entry_points.txt").write_text(
        "[evr1.rewards]\nfine = evr1_third_rewards:Fine\n[evr1.trackers]\nlost = evr1_third_rewards:Lost\n"
        "[evr1.hooks]\near = evr1_third_rewards\n"
    )
    (tmp_path / "evr1_third_rewards.py").write_text(
        '"""Hears everything."""\n'
        "from attrs import define, field\n"
        "from evr1_core.api import Reward, RewardResult, hookimpl\n\n"
        "api = 1\n\n"
        "@define(kw_only=True)\n"
        "class Fine(Reward):\n"
        '    """All is fine.\n\n    Really.\n    """\n\n'
        "    api = 1\n"
        "    tasks = frozenset({'fine'})\n"
        "    share: float = field(default=0.5, metadata={'help': 'what all get'})\n"
        "    limit: int | None = None\n"
        "    name: str\n\n"
        "    def score(self, item):\n"
        "        return RewardResult(accuracy=self.share, parsed=True)\n\n"
        "@hookimpl\n"
        "def evr1_run_ended(error):\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("evr1_third_rewards", None)


@pytest.mark.usefixtures("third_party")
def test_the_page_of_a_plugin(capsys):
    assert main(["plugins", "rewards/fine"]) == 0
    assert capsys.readouterr().out == (
        "rewards/fine  evr1-third 1.5  evr1_third_rewards:Fine\n\n"
        "All is fine.\n\nReally.\n\n"
        "Options:\n"
        "  share (float, default 0.5): what all get\n"
        "  limit (int | None, default None)\n"
        "  name (str, required)\n"
    )


@pytest.mark.usefixtures("third_party")
def test_the_page_by_distribution_and_of_a_listener(capsys):
    assert main(["plugins", "rewards/evr1-third/fine"]) == 0
    assert "All is fine." in capsys.readouterr().out
    assert main(["plugins", "hooks/ear"]) == 0
    assert capsys.readouterr().out == "hooks/ear  evr1-third 1.5  evr1_third_rewards\n\nHears everything.\n"


@pytest.mark.usefixtures("third_party")
def test_check_imports_and_says_what_fails(capsys):
    assert main(["plugins", "trackers", "--check", "--json"]) == 1
    (row,) = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "lost"]
    assert row["problem"].startswith("AttributeError: ")
    assert main(["plugins", "hooks", "--check"]) == 0


@pytest.mark.usefixtures("third_party")
def test_a_disabled_distribution_is_not_checked(monkeypatch, capsys):
    monkeypatch.setenv("EVR1_DISABLE", "evr1-third")
    main(["plugins", "rewards", "--check"])
    assert "evr1_third_rewards" not in sys.modules
    assert "disabled by EVR1_DISABLE" in capsys.readouterr().out


def test_one_group(capsys):
    assert main(["plugins", "algorithms"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["algorithms", "grpo", "evr1", importlib.metadata.version("evr1")] in rows
    assert {row[0] for row in rows} == {"algorithms"}


def test_what_can_be_wrong(capsys):
    assert main(["plugins", "rewards/mqc"]) == 2
    assert "no reward 'mqc'; did you mean 'mcq'?" in capsys.readouterr().err
    assert main(["plugins", "reward/mcq"]) == 2
    assert "no plugin group 'reward'; did you mean 'rewards'?" in capsys.readouterr().err
