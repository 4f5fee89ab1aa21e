import json
import os
from pathlib import Path

import pytest

from evr1_core.api import DataError, Media
from evr1_core.config.schema import DataConfig, KeysConfig
from evr1_core.data.records import read_samples


def refused(read, *changes, **settings):
    with pytest.raises(DataError) as caught:
        read(*changes, **settings)
    return list(caught.value.problems)


def test_a_record_in_full(read, folder):
    row = {
        "problem_id": 7,
        "problem": "<video>When does <image> appear?",
        "problem_type": "Temporal_Grounding",
        "data_type": "video",
        "data_source": "films",
        "videos": ["a.mp4"],
        "images": "a.png",
        "options": ["A. x", 2],
        "answer": {"time": [1, 2.5]},
        "has_offline_trajectory": True,
        "offline_output": "<answer>x</answer>",
        "note": [1],
    }
    (sample,) = read(row)
    assert (sample.uid, sample.task, sample.source, sample.origin) == ("rows:0", "temporal grounding", "films", "rows.jsonl:1")
    assert (sample.problem, sample.options) == (row["problem"], ("A. x", "2"))
    assert json.loads(sample.answer) == {"time": [1, 2.5]}
    assert sample.media == (Media(kind="video", path=str(folder / "a.mp4")), Media(kind="image", path=str(folder / "a.png")))
    assert sample.offline == "<answer>x</answer>"
    assert sample.extra == {"problem_id": 7, "note": [1]}


def test_only_three_keys_are_needed(read):
    (sample,) = read({})
    assert (sample.uid, sample.media, sample.options, sample.source, sample.offline, sample.extra) == (
        "rows:0",
        (),
        (),
        "",
        None,
        {},
    )
    empty = {"options": [], "videos": [], "images": "", "data_type": "", "data_source": None, "offline_output": None}
    assert read(empty) == [sample]


@pytest.mark.parametrize(
    ("answer", "text"),
    [("B", "B"), (" 3 ", " 3 "), (3, "3"), (2.50, "2.5"), (True, "true"), (0, "0"), (False, "false"), ([1, "é"], '[1, "é"]')],
)
def test_answers_are_kept_as_text(read, answer, text):
    assert read({"answer": answer})[0].answer == text


def test_ids(read):
    rows = [{"id": 4, "name": "x"}, {"id": "5", "name": "y"}]
    assert [sample.uid for sample in read(*rows)] == ["rows:0", "rows:1"]
    assert [sample.uid for sample in read(*rows, keys=KeysConfig(uid="id"))] == ["4", "5"]
    assert refused(read, {"id": "a"}, {"id": "b"}, {"id": "a"}, {"id": "a"}, keys=KeysConfig(uid="id")) == [
        "rows.jsonl:3: uid 'a' stands at rows.jsonl:1 too",
        "rows.jsonl:4: uid 'a' stands at rows.jsonl:1 too",
    ]
    reason = "must be text or a whole number, since data.keys.uid names it; is"
    assert refused(read, {"id": True}, {"id": 1.5}, {"id": " "}, {}, keys=KeysConfig(uid="id")) == [
        f"rows.jsonl:1: id: {reason} true",
        f"rows.jsonl:2: id: {reason} 1.5",
        f'rows.jsonl:3: id: {reason} " "',
        f"rows.jsonl:4: id: {reason} missing",
    ]


def test_ids_over_several_files(read, folder):
    read({})
    Path("more").mkdir()
    for name in ("more/rows.jsonl", "other.jsonl"):
        Path(name).write_text(Path("rows.jsonl").read_text() * 2)
    samples = read_samples(["rows.jsonl", "other.jsonl"], DataConfig())
    assert [sample.uid for sample in samples] == ["rows:0", "other:0", "other:1"]
    with pytest.raises(DataError) as caught:
        read_samples(["rows.jsonl", "more/rows.jsonl"], DataConfig())
    assert caught.value.problems == (
        "more/rows.jsonl: is called like rows.jsonl, and ids are made of file name and row; rename it or set data.keys.uid",
    )


def test_other_names_of_keys(read):
    row = {"q": "How?", "gold": 1, "kind": "counting", "clip": "a.mp4", "problem": ..., "answer": ..., "problem_type": ...}
    (sample,) = read(row, keys=KeysConfig(problem="q", answer="gold", task="kind", videos="clip"))
    assert (sample.problem, sample.answer, sample.task, len(sample.media)) == ("<video>How?", "1", "counting", 1)


def test_placeholders_are_added_in_front(read):
    (sample,) = read({"images": ["a.png", "b.png"], "videos": ["a.mp4"]})
    assert sample.problem == "<image><image><video>How many?"
    assert [Path(media.path).name for media in sample.media] == ["a.png", "b.png", "a.mp4"]


def test_media_stand_in_the_order_of_the_text(read):
    (sample,) = read(
        {"problem": "<video> or <image>, <video> or <image>?", "images": ["a.png", "b.png"], "videos": ["a.mp4", "b.mp4"]}
    )
    assert [Path(media.path).name for media in sample.media] == ["a.mp4", "a.png", "b.mp4", "b.png"]


def test_spans(read):
    items = ["a.mp4", {"path": "a.mp4"}, {"video": "a.mp4", "start": 1, "end": 2.5}, {"path": "a.mp4", "end": 3, "start": None}]
    (sample,) = read({"videos": items})
    assert [media.span for media in sample.media] == [None, None, (1.0, 2.5), (0.0, 3.0)]


def test_the_media_root(read, folder):
    Path("media").mkdir()
    Path("media/c.mp4").write_bytes(b"x")
    assert read({"videos": "c.mp4"}, media_root="media")[0].media[0].path == str(folder / "media" / "c.mp4")
    assert read({"videos": str(folder / "a.mp4")}, media_root="media")[0].media[0].path == str(folder / "a.mp4")
    Path("deep").mkdir()
    Path("rows.jsonl").rename("deep/rows.jsonl")
    Path("deep/rows.jsonl").write_text(Path("deep/rows.jsonl").read_text().replace(str(folder / "a.mp4"), "../a.mp4"))
    (sample,) = read_samples(["deep/rows.jsonl"], DataConfig())
    assert Path(sample.media[0].path).samefile("a.mp4")


def test_stored_trajectories(read):
    rows = [
        {"offline_output": "x"},
        {"offline_output": "x", "has_offline_trajectory": True},
        {"offline_output": "x", "has_offline_trajectory": False},
        {"offline_output": " \n"},
        {"offline_output": "", "has_offline_trajectory": False},
    ]
    assert [sample.offline for sample in read(*rows)] == ["x", "x", None, None, None]


def test_their_log_probabilities(read):
    rows = [{"offline_output": "x", "offline_logprobs": [-1.5, 0]}, {"offline_output": "x"}]
    assert [sample.offline_logprobs for sample in read(*rows)] == [(-1.5, 0.0), ()]


HALF = "\ud83d"
BAD = [
    ({"problem": ...}, "problem: must be text that is not blank; is missing"),
    ({"problem": " \n"}, 'problem: must be text that is not blank; is " \\n"'),
    ({"problem": 3}, "problem: must be text that is not blank; is 3"),
    ({"problem": "x" + HALF}, "problem: holds half a surrogate pair at character 1, which no tokenizer takes"),
    ({"problem_type": ""}, 'problem_type: must be text that is not blank; is ""'),
    ({"answer": ...}, "answer: must be given; is missing"),
    ({"offline_logprobs": "x"}, 'offline_logprobs: must be a list of numbers; is "x"'),
    ({"offline_logprobs": [0.5]}, "offline_logprobs: must hold logarithms of probabilities, 0 or less; holds 0.5"),
    ({"answer": None}, "answer: must be given; is missing"),
    ({"answer": "  "}, 'answer: must be given; is "  "'),
    ({"answer": []}, "answer: must be given; is []"),
    ({"answer": HALF}, "answer: holds half a surrogate pair at character 0, which no tokenizer takes"),
    ({"options": "A. x"}, 'options: must be a list of texts; is "A. x"'),
    ({"options": {"A": "x"}}, 'options: must be a list of texts; is {"A": "x"}'),
    ({"options": ["x", None]}, "options: must hold texts that are not blank; holds missing"),
    ({"options": ["x", " "]}, 'options: must hold texts that are not blank; holds " "'),
    ({"options": ["x", ["y"]]}, 'options: must hold texts that are not blank; holds ["y"]'),
    ({"data_source": 3}, "data_source: must be text; is 3"),
    ({"data_type": "audio"}, 'data_type: must be text, image or video; is "audio"'),
    ({"data_type": 3}, "data_type: must be text, image or video; is 3"),
    ({"data_type": "video"}, "data_type: says video, and videos is empty"),
    ({"data_type": "image", "videos": "a.mp4"}, "data_type: says image, and images is empty"),
    ({"data_type": "text", "images": "a.png"}, "data_type: says text, and images is not empty"),
    ({"data_type": "image", "images": "a.png", "videos": "a.mp4"}, "data_type: says image, and videos is not empty"),
    ({"videos": 3}, "videos: must hold paths; holds 3"),
    ({"videos": ["a.mp4", ""]}, 'videos: must hold paths; holds ""'),
    ({"videos": [None]}, "videos: must hold paths; holds missing"),
    (
        {"videos": [["1.jpg", "2.jpg"]]},
        "videos: holds a list of frames; give the video file, since the times of loose frames are not known",
    ),
    (
        {"videos": {"path": ["1.jpg"]}},
        "videos: holds a list of frames; give the video file, since the times of loose frames are not known",
    ),
    ({"videos": "a.PNG"}, 'videos: "a.PNG" is a picture; give the video file, or name pictures under images'),
    ({"videos": {"path": "a.mp4", "fps": 2}}, 'videos: unknown key "fps" of video; known: end, path, start, video'),
    ({"images": {"path": "a.png", "start": 2}}, 'images: unknown key "start" of image; known: image, path'),
    ({"videos": {"start": 1, "end": 2}}, 'videos: must name a file by `path` or by `video`; is {"start": 1, "end": 2}'),
    ({"videos": {"path": "a.mp4", "start": 2, "end": 2}}, "videos: must have 0 <= start < end; they are 2 and 2"),
    ({"videos": {"path": "a.mp4", "start": -1, "end": 2}}, "videos: must have 0 <= start < end; they are -1 and 2"),
    ({"videos": {"path": "a.mp4", "start": 1}}, "videos: start and end must be seconds; one is missing"),
    ({"videos": {"path": "a.mp4", "end": float("inf")}}, "videos: start and end must be seconds; one is Infinity"),
    ({"videos": {"path": "a.mp4", "end": True}}, "videos: start and end must be seconds; one is true"),
    ({"videos": {"path": "a.mp4", "end": 10**400}}, None),
    ({"problem": "<video> <video>", "videos": "a.mp4"}, "the text has 2 <video> and the record has 1 video"),
    ({"problem": "<image>?"}, "the text has 1 <image> and the record has 0 images"),
    ({"problem": "<video>?", "videos": "a.mp4", "images": "a.png"}, "the text has 0 <image> and the record has 1 image"),
    ({"offline_output": 3}, "offline_output: must be text; is 3"),
    ({"has_offline_trajectory": "true", "offline_output": "x"}, 'has_offline_trajectory: must be true or false; is "true"'),
    ({"has_offline_trajectory": 1, "offline_output": "x"}, "has_offline_trajectory: must be true or false; is 1"),
    ({"has_offline_trajectory": True, "offline_output": " "}, "has_offline_trajectory: is true, and offline_output is blank"),
    ({"has_offline_trajectory": True}, "has_offline_trajectory: is true, and offline_output is blank"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: json.dumps(case[0], default=str)[:60])
def test_bad_rows(read, case):
    change, reason = case
    found = refused(read, {}, change)
    assert len(found) == 1
    assert reason is None or found == [f"rows.jsonl:2: {reason}"]


@pytest.mark.parametrize("row", ["3", '"text"', "[1]", "null", "true"])
def test_rows_that_are_no_objects(folder, row):
    Path("rows.jsonl").write_text(row)
    with pytest.raises(DataError, match=r"^rows\.jsonl:1: a record must be an object; is "):
        read_samples(["rows.jsonl"], DataConfig())


def test_all_bad_rows_of_all_files_are_listed(folder):
    Path("a.json").write_text('[\n{"problem": "x"},\n{},\n3\n]')
    Path("b.jsonl").write_text('{"a": 1\n{}\n')
    with pytest.raises(DataError) as caught:
        read_samples(["a.json", "no.json", "b.jsonl"], DataConfig())
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "a.json:2",
        "a.json:3",
        "a.json:4",
        "no.json",
        "b.jsonl:1",
        "b.jsonl:2",
    ]


def test_media_files(read, folder):
    Path("empty.mp4").touch()
    Path("films.mp4").mkdir()
    os.symlink("nowhere.mp4", "dangling.mp4")
    os.symlink("loop.mp4", "loop.mp4")
    os.mkfifo("pipe.mp4")
    names = [
        "no.mp4",
        "empty.mp4",
        "films.mp4",
        "dangling.mp4",
        "loop.mp4",
        "pipe.mp4",
        "x" * 300 + ".mp4",
        "a\0b.mp4",
        "a.mp4/b.mp4",
    ]
    found = refused(read, *({"videos": name} for name in names), {"videos": ["no.mp4", "no.mp4", "a.mp4"]})
    assert found[:4] == [
        "rows.jsonl:1: there is no file no.mp4",
        "rows.jsonl:2: empty.mp4 is empty",
        "rows.jsonl:3: films.mp4 is a folder",
        "rows.jsonl:4: dangling.mp4 is a link to nothing",
    ]
    assert [problem.partition(": ")[2].endswith(end) for problem, end in zip(found[4:9], REASONS, strict=True)] == [True] * 5, found
    assert found[9:] == ["rows.jsonl:10: there is no file no.mp4"]


REASONS = [
    "Too many levels of symbolic links",
    "pipe.mp4 is no file",
    "File name too long",
    "embedded null byte",
    "Not a directory",
]


def test_each_file_is_looked_at_once(read, monkeypatch):
    seen = []
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **kwargs: seen.append(path.name) or stat(path, **kwargs))
    read(*[{"videos": ["a.mp4", "b.mp4"]}] * 50)
    assert seen.count("a.mp4") <= 2  # what is it, and how large
    assert seen.count("b.mp4") <= 2


def test_parquet_rows(folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {
            "problem": "x",
            "answer": "1",
            "problem_type": "ocr",
            "videos": [{"path": "a.mp4", "start": 1.0, "end": 2.0}],
            "options": None,
        },
        {
            "problem": "y",
            "answer": "2",
            "problem_type": "ocr",
            "videos": [{"path": "b.mp4", "start": None, "end": None}],
            "options": ["a"],
        },
        {"problem": None, "answer": "2", "problem_type": "ocr", "videos": [], "options": []},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows[:2]), "good.parquet")
    samples = read_samples(["good.parquet"], DataConfig())
    assert [(sample.uid, sample.media[0].span, sample.options) for sample in samples] == [
        ("good:0", (1.0, 2.0), ()),
        ("good:1", None, ("a",)),
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "bad.parquet")
    with pytest.raises(DataError, match=r"^bad\.parquet:row 3: problem: must be text"):
        read_samples(["bad.parquet"], DataConfig())
