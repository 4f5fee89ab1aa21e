"""What becomes of samples whose media cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from evr1_core.api import CacheError, DataError, Media, Sample
from evr1_core.cache.bad import bad_metrics, find_bad, without_bad
from evr1_core.config.schema import DataConfig


def sample(uid: str, folder: Path, *names: str) -> Sample:
    media = tuple(Media(kind="video", path=str(folder / name)) for name in names)
    return Sample(uid=uid, task="t", problem="?", answer="A", media=media, origin=f"x.jsonl:{uid}")


@pytest.fixture
def samples(films) -> list[Sample]:
    return [
        sample("1", films, "one_frame.mp4"),
        sample("2", films, "html.mp4"),
        sample("3", films),
        sample("4", films, "one_frame.mp4", "zero.mp4", "html.mp4"),
        sample("5", films, "missing.mp4"),
        *(sample(str(number), films, "one_frame.mp4") for number in range(6, 11)),
    ]


def test_bad_ones_are_found_with_uid_and_reason(samples, small):
    bad = find_bad(samples, small())
    assert [(each.uid, each.kind) for each in bad] == [("2", "undecodable"), ("4", "empty"), ("4", "undecodable"), ("5", "missing")]
    assert str(bad[1]).startswith("x.jsonl:4: record '4': ")
    assert "zero.mp4: is empty" in str(bad[1])


def test_each_file_is_looked_at_once(samples, small, monkeypatch):
    cache, seen = small(), []
    plan = cache.plan
    monkeypatch.setattr(cache, "plan", lambda media: seen.append(media.path) or plan(media))
    find_bad([*samples, *samples], cache)
    assert len(seen) == len(set(seen))


def test_failing_lists_all(samples, small):
    bad = find_bad(samples, small())
    with pytest.raises(DataError, match="3 records cannot be used") as caught:
        without_bad(samples, bad, DataConfig())
    assert len(caught.value.problems) == 5
    assert "data.on_bad_media: skip" in caught.value.problems[-1]


def test_skipping_up_to_a_share(samples, small):
    bad = find_bad(samples, small())
    kept = without_bad(samples, bad, DataConfig(on_bad_media="skip", max_bad_media=0.3))
    assert [each.uid for each in kept] == ["1", "3", "6", "7", "8", "9", "10"]
    with pytest.raises(DataError, match=r"30\.00% of the records, and data\.max_bad_media allows 29\.00%"):
        without_bad(samples, bad, DataConfig(on_bad_media="skip", max_bad_media=0.29))


def test_nothing_bad_changes_nothing(samples):
    assert without_bad(samples, [], DataConfig()) == samples


def test_what_is_left_out_is_counted(samples, small):
    assert bad_metrics(samples, find_bad(samples, small())) == {
        "data/bad_media": 3.0,
        "data/bad_media_share": 0.3,
        "data/bad_media/undecodable": 2.0,
        "data/bad_media/empty": 1.0,
        "data/bad_media/missing": 1.0,
    }


def test_an_entry_that_must_be_there_is_not_the_film_s_fault(samples, small):
    with pytest.raises(CacheError, match="no entry in"):
        find_bad(samples, small(mode="only"))
    small().clip(samples[0].media[0])
    assert len(find_bad([samples[0], samples[1]], small())) == 1
    assert find_bad([samples[0]], small(mode="only")) == []
