"""Video-MME-v2. The rows are made by hand in the documented shape."""

from __future__ import annotations

import pytest

from evr1_core.api import BenchmarkPaths, DataError, ScoredRow
from evr1_core.testing import check_benchmark
from evr1_plugins.benchmarks.videomme_v2 import VideoMMEv2

ROW = {
    "video_id": "023",
    "question_id": "023-1",
    "question": "What falls?",
    "options": "\n".join(f"{letter}. thing {letter.lower()}" for letter in "ABCDEFGH"),
    "answer": "H",
    "group_type": "relevance",
    "group_structure": "[1,2,3,4]",
    "level": None,
    "second_head": None,
    "third_head": None,
}
LAST = {"level": 2, "second_head": "Motion", "third_head": "Falls"}


def group(video="023", **values):
    """The four rows of a video, not in their order."""
    rows = [{**ROW, **values, "video_id": video, "question_id": f"{video}-{number}"} for number in (1, 2, 3, 4)]
    return [rows[2], {**rows[3], **LAST}, rows[0], rows[1]]


def aggregate(items, right):
    order = {item.uid: position for item, position in ((item, item.cluster[1]) for item in items)}
    scored = [ScoredRow(item=item, answer=None, scores={"accuracy": float(right[order[item.uid] - 1])}) for item in items]
    return VideoMMEv2().aggregate(scored)


def test_official_rows(release) -> None:
    items = release(VideoMMEv2(), {"test.parquet": group()})
    check_benchmark(VideoMMEv2(), items)
    third, last, first, _ = items
    assert (first.uid, third.cluster, last.cluster) == ("videomme_v2/023-1", ("023", 3), ("023", 4))
    assert (first.labels, first.choices[7], first.gold) == (tuple("ABCDEFGH"), "thing h", "H")
    assert (first.video, first.subtitle) == ("videos/023.mp4", "subtitle/023.jsonl")


@pytest.mark.parametrize(
    ("kind", "structure", "right", "wanted"),
    [
        ("relevance", "[1,2,3,4]", "0000", 0),
        ("relevance", "[1,2,3,4]", "0100", 6.25),
        ("relevance", "[1,2,3,4]", "1010", 25),
        ("relevance", "[1,2,3,4]", "1011", 56.25),
        ("relevance", "[1,2,3,4]", "1111", 100),
        ("logic", "[1,2,3,4]", "1011", 6.25),
        ("logic", "[1,2,3,4]", "0111", 0),
        ("logic", "[1,2,3,4]", "1110", 56.25),
        ("logic", "[1,[2,3],4]", "1011", 100 * 4 / 12),
        ("logic", "[1, [2, 3], 4]", "1001", 100 / 12),
        ("logic", "[1,[2,3],4]", "1101", 100 * 4 / 12),
        ("logic", "[1,[2,3],4]", "1110", 100 * 7 / 12),
        ("logic", "[[1,2],3,4]", "0111", 10),
        ("logic", "[[1,2],3,4]", "1011", 10),
        ("logic", "[[1,2],3,4]", "1101", 20),
        ("logic", "[[1,2],3,4]", "1110", 50),
        ("logic", "[[1,2],3,4]", "1111", 100),
    ],
)
def test_what_a_group_is_worth(release, kind, structure, right, wanted) -> None:
    items = release(VideoMMEv2(), {"test.parquet": group(group_type=kind, group_structure=structure)})
    found = aggregate(items, [int(each) for each in right])
    names = ("non_linear", f"type={kind}/non_linear", "level=2/non_linear", "second_head=Motion/non_linear")
    assert [found[name] for name in names] == [pytest.approx(wanted)] * 4
    assert found["accuracy"] == 25 * right.count("1")


def test_groups_are_averaged_and_what_is_not_read_is_wrong(release) -> None:
    items = release(VideoMMEv2(), {"test.parquet": [*group(), *group("024", group_type="logic")]})
    rows = [
        ScoredRow(item=item, answer=None, scores=VideoMMEv2().score(item, VideoMMEv2().parse(item, text, "lenient"), None))
        for item in items
        for text in ["hm" if item.cluster in (("023", 4), ("024", 1)) else "H"]
    ]
    found = VideoMMEv2().aggregate(rows)
    assert (found["type=relevance/non_linear"], found["type=logic/non_linear"]) == (56.25, 0.0)
    assert (found["non_linear"], found["accuracy"]) == (28.125, 75.0)


def test_structures_that_nobody_knows(release) -> None:
    with pytest.raises(DataError, match=r"test\.parquet:row 1: unknown group_type 'logic' or group_structure '\[4,3\]'"):
        release(VideoMMEv2(), {"test.parquet": [{**ROW, "group_type": "logic", "group_structure": "[4,3]"}]})


def test_where_videos_lie(tmp_path) -> None:
    paths = BenchmarkPaths(folder=tmp_path)
    (tmp_path / "videos" / "002").mkdir(parents=True)
    (tmp_path / "videos" / "002" / "023.mp4").touch()
    assert VideoMMEv2().locate("videos/023.mp4", paths) == "videos/002/023.mp4"
    assert VideoMMEv2().locate("videos/043.mp4", paths) is None
