"""The file of pass rates: what it takes in, what it refuses, and what a writer leaves that was stopped half-way."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from evr1_core.api import DataError, Evr1Error
from evr1_core.rollout.pass_rates import PassRate, PassRates


def measured(uid: str, *accuracies: float | None, settings: str = "now", record: str = "r") -> PassRate:
    return PassRate(settings=settings, record=record, uid=uid, accuracies=accuracies, truncated=1)


def opened(path: Path, settings: str = "now") -> PassRates:
    return PassRates(path, settings=settings, threshold=0.5)


def test_rows_by_hand(tmp_path):
    with opened(tmp_path / "x") as rates:
        rates.add([measured("é:0", 1.0, 0.5, 0.49, None), measured("a:1", None, None)])
    rows = [json.loads(line) for line in (tmp_path / "x").read_text().splitlines()]
    common = {"settings": "now", "record": "r", "threshold": 0.5, "truncated": 1}
    assert rows[0] == common | {"uid": "é:0", "k": 4, "pass_rate": 2 / 3, "accuracies": [1.0, 0.5, 0.49, None]}
    assert rows[1] == common | {"uid": "a:1", "k": 2, "pass_rate": None, "accuracies": [None, None]}


def test_what_is_found_again(tmp_path):
    with opened(tmp_path / "x") as rates:
        rates.add([measured("a", 0.0), measured("b", 1.0, record="old"), measured("c", None)])
        rates.add([measured("a", 1.0)])
        assert rates.find("a", "r") == measured("a", 1.0)
    with opened(tmp_path / "x", "other") as rates:
        assert rates.find("a", "r") is None
        rates.add([measured("a", 0.3, settings="other")])
    with opened(tmp_path / "x") as rates:
        assert rates.find("a", "r") == measured("a", 1.0)  # the last of its settings
        assert [rates.find(uid, "r") for uid in ("b", "c", "d")] == [None] * 3
    assert len((tmp_path / "x").read_text().splitlines()) == 5


def test_a_full_disk_is_a_message_and_the_next_pass_goes_on(tmp_path):
    """The size of files is limited in the middle of the third row, which the kernel then writes in part."""
    path = tmp_path / "x"
    with opened(path) as rates:
        rates.add([measured("a", 1.0), measured("b", 1.0)])
        before = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limits[1]))
        try:
            with pytest.raises(Evr1Error, match=r"--rates: .*x cannot be written: File too large"):
                rates.add([measured("c", 1.0)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(path.read_bytes()) == len(before) + 40
    with opened(path) as rates:
        assert path.read_bytes() == before
        assert (rates.find("b", "r"), rates.find("c", "r")) == (measured("b", 1.0), None)


GOOD = json.dumps({"settings": "s", "record": "r", "uid": "u", "accuracies": [1.0], "truncated": 0})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[1]",
        "3",
        "[" * 100_000,
        GOOD.replace("[1.0]", "[]"),
        GOOD.replace("[1.0]", '"1"'),
        GOOD.replace("[1.0]", "[1.5]"),
        GOOD.replace("[1.0]", "[NaN]"),
        GOOD.replace("[1.0]", "7"),
        GOOD.replace('"u"', "7"),
        GOOD.replace(' "truncated": 0', ' "truncated": "0"'),
    ],
)
def test_other_rows_are_refused_and_left_alone(tmp_path, line):
    path = tmp_path / "x"
    text = f'{GOOD}\n{line}\n{{"settings": "to'
    path.write_text(text)
    with pytest.raises(DataError, match=r"x:2: no row of pass rates") as caught:
        opened(path).__enter__()
    assert len(caught.value.problems) == 1
    assert path.read_text() == text


@pytest.mark.parametrize("text", ['{"a": 1}', "words", f"{GOOD}\nwords"])
def test_a_last_line_of_something_else_is_not_cut_off(tmp_path, text):
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(DataError, match="holds something else than pass rates"):
        opened(path).__enter__()
    assert path.read_text() == text


def test_where_nothing_can_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "x"):
        with pytest.raises(Evr1Error, match="cannot be written"):
            opened(path).__enter__()
