import json
import sys

import pytest

from evr1_core.api import ClashError, PluginError, UnknownPluginError
from evr1_core.registry.catalog import Catalog, PluginRef


def ref(name, dist="evr1", group="rewards", **more):
    return PluginRef(group=group, name=name, target=f"module:{name}", dist=dist, version="1.0", **more)


CATALOG = Catalog((ref("mcq"), ref("temporal_iou"), ref("shout", "evr1-a"), ref("shout", "Evr1_B"), ref("hf", group="engines")))


def test_finds_by_bare_and_by_full_name():
    assert CATALOG.find("rewards", "mcq") is CATALOG.refs[0]
    assert CATALOG.find("rewards", "evr1/mcq") is CATALOG.refs[0]
    assert CATALOG.find("rewards", "evr1-a/shout") is CATALOG.refs[2]
    assert CATALOG.find("rewards", "evr1.b/shout") is CATALOG.refs[3]  # distribution names compare normalised


def test_an_unknown_name_gets_the_nearest_and_the_list():
    with pytest.raises(UnknownPluginError) as caught:
        CATALOG.find("rewards", "temporal_iuo")
    assert str(caught.value) == "no reward 'temporal_iuo'; did you mean 'temporal_iou'? (installed: mcq, shout, temporal_iou)"


def test_a_name_of_another_group_is_unknown():
    with pytest.raises(UnknownPluginError, match=r"no reward 'hf'"):
        CATALOG.find("rewards", "hf")
    with pytest.raises(UnknownPluginError, match=r"no tracker 'x' \(none is installed\)"):
        CATALOG.find("trackers", "x")


def test_a_wrong_distribution_is_unknown():
    with pytest.raises(UnknownPluginError, match=r"no reward 'evr1-c/shout'; did you mean 'evr1-a/shout'\?"):
        CATALOG.find("rewards", "evr1-c/shout")


def test_an_unknown_group_gets_the_nearest():
    with pytest.raises(UnknownPluginError, match=r"no plugin group 'reward'; did you mean 'rewards'\?"):
        CATALOG.find("reward", "mcq")


def test_a_bare_name_of_two_distributions_names_both():
    with pytest.raises(ClashError) as caught:
        CATALOG.find("rewards", "shout")
    assert str(caught.value) == "reward 'shout' is offered by evr1-a 1.0 and Evr1_B 1.0; say which: evr1-a/shout or Evr1_B/shout"
    assert [CATALOG.problem(each) for each in CATALOG.refs] == [None, None, "clash", "clash", None]


def test_disabling_one_side_ends_the_clash(monkeypatch):
    monkeypatch.setenv("EVR1_DISABLE", " evr1-A ,nobody")
    assert CATALOG.find("rewards", "shout") is CATALOG.refs[3]
    assert not CATALOG.clashes(CATALOG.refs[3])


def test_listeners_share_names():
    catalog = Catalog((ref("log", "evr1-a", "hooks"), ref("log", "evr1-b", "hooks")))
    assert not catalog.clashes(catalog.refs[0])


def test_a_problem_and_a_clash_are_listed_together():
    catalog = Catalog((ref("x", "evr1-a", problem="needs evr1<0.1, this is 0.1.0"), ref("x", "evr1-b")))
    assert catalog.problem(catalog.refs[0]) == "clash; needs evr1<0.1, this is 0.1.0"


def test_scan_reads_installed_metadata_and_imports_nothing(install):
    install("good", "broken", "clash", "old")
    catalog = Catalog.scan()
    found = {(each.group, each.name, each.dist): each for each in catalog.refs}
    good = found["rewards", "shout", "evr1-test-good"]
    assert (good.target, good.version, good.problem) == ("evr1_test_good:Shout", "0.3", None)
    assert found["rewards", "vintage", "evr1-test-old"].problem == "needs evr1<0.1, this is 0.1.0"
    assert found["benchmarks", "too_early", "evr1-test-broken"].version == "0.2"
    assert not [name for name in sys.modules if name.startswith("evr1_test_")]


def test_of_two_copies_of_a_distribution_the_first_on_the_path_counts(tmp_path, monkeypatch):
    for folder, version in (("second", "1.0"), ("first", "2.0")):
        info = tmp_path / folder / f"evr1_copy-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: evr1-copy\nVersion: {version}\n")
        (info / "entry_points.txt").write_text("[evr1.rewards]\ncopied = m:C\n")
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert Catalog.scan().find("rewards", "copied").version == "2.0"


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("evr1 (>=0.1,<0.2)", None),
        ("evr1[vllm]>=0.2", "needs evr1>=0.2, this is 0.1.0"),
        ("evr1>=5; python_version < '3'", None),
        ("evr1>=5; extra == 'more'", None),
        ("evr1-other>=5", None),
        ("evr1 >= > 3", "its requirement 'evr1 >= > 3' cannot be read"),
    ],
)
def test_the_requirement_on_evr1(tmp_path, monkeypatch, requirement, problem):
    info = tmp_path / "evr1_wants-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: evr1-wants\nVersion: 1.0\nRequires-Dist: {requirement}\n")
    (info / "entry_points.txt").write_text("[evr1.rewards]\nwanting = m:C\n[evr1.nonsense]\nx = m:C\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = [each for each in Catalog.scan().refs if each.dist == "evr1-wants"]
    assert (found.name, found.problem) == ("wanting", problem)


def test_unreadable_entry_points_name_their_distribution(tmp_path, monkeypatch):
    info = tmp_path / "evr1_garbled-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evr1-garbled\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[evr1.rewards]\nno target here\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match=r"evr1-garbled 1\.0: its entry points cannot be read"):
        Catalog.scan()


def test_the_list_as_json(evr1):
    listed = evr1("plugins", "--json", dists=("good", "clash", "old"))
    assert listed.returncode == 0
    rows = {(row["group"], row["name"], row["distribution"]): row for row in json.loads(listed.stdout)}
    assert rows["rewards", "shout", "evr1-test-good"] == {
        "group": "rewards",
        "name": "shout",
        "target": "evr1_test_good:Shout",
        "distribution": "evr1-test-good",
        "version": "0.3",
        "problem": "clash",
    }
    assert rows["rewards", "mcq", "evr1"]["problem"] == "clash"
    assert rows["algorithms", "grpo", "evr1"]["problem"] is None
    assert rows["hooks", "gramophone", "evr1-test-old"]["problem"] == "needs evr1<0.1, this is 0.1.0"


def test_the_list_as_a_table(evr1):
    lines = evr1("plugins", dists=("clash", "old"), EVR1_DISABLE="evr1-test-old").stdout.splitlines()
    rows = [line.split() for line in lines]
    assert ["rewards", "mcq", "evr1", "0.1.0", "clash"] in rows
    assert ["rewards", "mcq", "evr1-test-clash", "0.1", "clash"] in rows
    assert ["rewards", "vintage", "evr1-test-old", "0.9", "disabled", "by", "EVR1_DISABLE"] in rows
    assert ["algorithms", "grpo", "evr1", "0.1.0"] in rows
