"""Reading releases: rows of every kind of file, the normalised form, where things lie, and transcripts."""

from __future__ import annotations

import json

import pytest

from evr1_core.api import BenchmarkPaths, DataError
from evr1_core.api.answers import Tube
from evr1_core.api.releases import Row, choices_of, label_of, normalised_item, read_gold, read_release, split_question
from evr1_core.api.subtitles import Line, read_lines, shown_with

NORMALISED = {
    "problem_type": "multiple choice",
    "problem": "Which one?",
    "options": ["A: red", "B: green"],
    "solution": "<answer>B</answer>",
    "path": "./videos/../videos/x.mp4",
    "problem_id": 7,
}


def rows(tmp_path, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    return list(read_release([tmp_path / name]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[{"q": "x", "n": 1},\n {"q": "y", "n": "2.5"}]'),
        ("a.jsonl", '{"q": "x", "n": 1}\n\n{"q": "y", "n": "2.5"}\n'),
        ("a.csv", 'q,n\nx,1\n"y",2.5\n'),
        ("a.tsv", "q\tn\nx\t1\ny\t2.5\n"),
    ],
)
def test_rows_of_every_kind_of_file(tmp_path, name, text):
    first, second = rows(tmp_path, name, text)
    assert [(row.index, row.text("q"), row.number("n")) for row in (first, second)] == [(0, "x", 1.0), (1, "y", 2.5)]
    assert second.origin.startswith(f"{tmp_path / name}:")


def test_objects_have_keys_and_files_are_counted_through(tmp_path):
    (tmp_path / "a.json").write_text('{"v1": {"q": "x"}, "v2": [1, 2]}', "utf-8")
    (tmp_path / "b.json").write_text('[{"q": "z"}]', "utf-8")
    found = list(read_release([tmp_path / "a.json", tmp_path / "b.json"]))
    assert [(row.index, row.key, row.file.name) for row in found] == [(0, "v1", "a.json"), (1, "v2", "a.json"), (2, "", "b.json")]
    assert found[1].any("value") == [1, 2]
    assert found[0].origin == f"{tmp_path / 'a.json'}: 'v1'"


def test_broken_files_and_values_name_their_place(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:2: no valid JSON"):
        rows(tmp_path, "a.jsonl", '{"q": 1}\n{"q"\n')
    (row,) = rows(tmp_path, "b.jsonl", '{"q": " ", "n": "many", "o": "A", "none": null}')
    for read, problem in (
        (lambda: row.text("q"), "q must be text that is not blank"),
        (lambda: row.text("none", "gone"), "there is no none or gone"),
        (lambda: row.number("n"), "n must be a number; is 'many'"),
        (lambda: row.texts("o"), "o must be a list of texts"),
    ):
        with pytest.raises(DataError, match=rf"b\.jsonl:1: {problem}"):
            read()
    assert row.with_values(q="x").text("q") == "x"


def test_options_of_an_object_and_of_nobody(tmp_path):
    (row,) = rows(tmp_path, "a.jsonl", '{"o": {"B": "green", "A": "red", "E": null}}')
    assert choices_of(row.texts("o")) == {"labels": ("A", "B"), "choices": ("red", "green")}
    assert choices_of(["A. red", "A. Smith"])["choices"] == ("red", "A. Smith")
    assert choices_of([]) == {"labels": (), "choices": ()}


def test_the_normalised_form(tmp_path):
    (row,) = rows(tmp_path, "x.jsonl", json.dumps(NORMALISED))
    item = normalised_item(row, "bench")
    assert (item.uid, item.source_id, item.task, item.gold, item.video) == ("bench/0", "7", "mc", "B", "videos/x.mp4")
    assert item.choices == ("red", "green")
    with pytest.raises(DataError, match="unknown problem_type 'essay'"):
        normalised_item(row.with_values(problem_type="essay"), "bench")
    with pytest.raises(DataError, match=r"x\.jsonl:1: record 'bench/0': the gold answer None is not the label"):
        normalised_item(row.with_values(solution="<answer>C</answer>"), "bench")
    still = normalised_item(
        row.with_values(image_path="./images/a.png", options=None, problem_type="numerical", solution="12"), "b"
    )
    assert (still.images, still.choices, still.gold) == (("images/a.png",), (), 12.0)


def test_golds_of_every_type():
    assert read_gold("count", "<answer>3</answer>") == 3
    assert read_gold("yesno", "<answer>No</answer>") is False
    assert read_gold("tgrounding", '<answer>{"time": [1, 2.5]}</answer>') == (1.0, 2.5)
    assert read_gold("open", "<answer>[26, 31]</answer>") == "[26, 31]"
    tube = read_gold("stgrounding", '<answer>{"time": [0, 2], "boxes": {"1": [4, 3, 1, 2]}}</answer>')
    assert tube == Tube((0.0, 2.0), {1.0: (1.0, 2.0, 4.0, 3.0)})


def test_where_things_lie(tmp_path):
    folder = tmp_path / "bench"
    (folder / "videos").mkdir(parents=True)
    for path in (folder / "b-2.json", folder / "b-1.json", tmp_path / "norm.json", folder / "videos" / "x.MP4"):
        path.write_text("[]")
    paths = BenchmarkPaths(folder=folder)
    assert [file.name for file in paths.official(("a-*.json", "b-*.json"))] == ["b-1.json", "b-2.json"]
    assert paths.normalised(("other.json", "norm.json")) == (tmp_path / "norm.json",)
    assert BenchmarkPaths(folder=folder, source="normalised").official(("b-*.json",)) == ()
    assert BenchmarkPaths(folder=folder, source="official").normalised(("norm.json",)) == ()
    assert paths.medium("videos/x.mp4") == "videos/x.MP4"
    assert paths.medium("videos/y.mp4") is None
    assert paths.medium("y.mp4", "videos/x.mkv") == "videos/x.MP4"


def test_a_label_by_the_text_of_its_choice(tmp_path) -> None:
    row = Row(values={}, index=0, origin="a.json:1", file=tmp_path)
    options = choices_of(["red", "blue", "blue"])
    assert label_of(row, options, " blue") == "B"
    with pytest.raises(DataError, match=r"a\.json:1: the answer 'green' is none of the choices"):
        label_of(row, options, "green")


def test_options_within_a_question(tmp_path) -> None:
    row = Row(values={}, index=0, origin="a.json:1", file=tmp_path)
    assert split_question(row, "Who is it?\n\n(A) Ann\n(B) Bob,\n the tall one\n(C) A. Smith") == (
        "Who is it?",
        ("(A) Ann", "(B) Bob, the tall one", "(C) A. Smith"),
    )
    assert split_question(row, "A. Smith\nsays what?\nA. x\nC. y\nB. z") == ("A. Smith\nsays what?", ("A. x C. y", "B. z"))
    assert split_question(row, "A. x\nB. y") == ("", ("A. x", "B. y"))
    with pytest.raises(DataError, match=r"a\.json:1: the question holds no options: 'Who is it\?'"):
        split_question(row, "Who is it?")


SRT = """\ufeff1
00:00:01,500 --> 00:00:02,000
<font color='x'>Hello
there</font>

2
00:01:00,000 --> 00:01:04,000
Later
""".replace("\n", "\r\n")
CLOCK = [
    {"start": "00:01:00.000", "end": "00:01:04.000", "line": "Later"},
    {"start": "00:00:01.500", "end": "00:00:02.000", "line": "Hello there"},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.srt", SRT),
        ("a.json", '[{"timestamp": [1.5, 2.0], "text": "Hello  there"}, {"timestamp": [60, 64], "text": "Later"}]'),
        ("b.json", json.dumps(CLOCK)),
        (
            "a.jsonl",
            '{"text": "Hello there", "start_time": 1.5, "end_time": 2.0}\n{"text": "Later", "start_time": 60, "end_time": 64}\n',
        ),
    ],
)
def test_transcripts(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    lines = read_lines(tmp_path / name)
    first = Line(1.25, 2.25, "Hello there") if name.endswith(".json") else Line(1.5, 2.0, "Hello there")
    assert lines == [first, Line(60.0, 64.0, "Later")]
    assert read_lines(tmp_path / name, offset=1.0)[0].start == first.start - 1.0
    assert shown_with(lines, [0.0, 1.75, 1.9]) == lines[:1]
    assert shown_with(lines, [0.0, 2.0], span=(60.0, 70.0)) == lines[1:]


def test_words_become_lines(tmp_path) -> None:
    said = [
        ("Hello", 0, 0.4),
        ("there.", 0.45, 0.9),
        ("We", 1.05, 1.2),
        ("go", 1.7, 1.8),
        ("on.", 1.85, 2),
        ("Now", 2.05, 2.2),
        ("?", 2.8, 3),
    ]
    words = [{"text": text, "start_time": start, "end_time": end} for text, start, end in reversed(said)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, words)), "utf-8")
    assert read_lines(tmp_path / "a.jsonl") == [Line(0, 0.9, "Hello there."), Line(1.05, 2.2, "We go on. Now"), Line(2.8, 3, "?")]


def test_short_lines_and_lines_without_an_end(tmp_path) -> None:
    lines = [{"timestamp": [1.5, 2.0], "text": "Hm"}, {"timestamp": [60, None], "text": "On and on"}]
    (tmp_path / "a.json").write_text(json.dumps(lines), "utf-8")
    short, endless = read_lines(tmp_path / "a.json", offset=0.5)
    assert short == Line(0.75, 1.75, "Hm")
    assert (endless.start, endless.end) == (59.5, float("inf"))
