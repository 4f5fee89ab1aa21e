import json
from pathlib import Path

import pytest

from evr1_core.cli.main import main

ROW = {"problem": "How many?", "answer": "3", "problem_type": "counting"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.mp4", "b.mp4", "a.png"):
        Path(name).write_bytes(b"x")


def write(name, *changes):
    Path(name).write_text("".join(json.dumps({**ROW, **change}) + "\n" for change in changes))


def test_counts(capsys):
    write(
        "train.jsonl",
        {"videos": "a.mp4", "data_source": "films", "offline_output": "x"},
        {"videos": ["a.mp4", "b.mp4"], "images": ["a.png", "a.png"], "data_source": "films"},
        {"problem_type": "OCR", "images": "a.png"},
        {},
        {"videos": "b.mp4"},
    )
    assert main(["data", "check", "train.jsonl"]) == 0
    assert capsys.readouterr().out == (
        "5 records, 3 media files, 1 stored trajectories\n"
        "by problem type:\n"
        "  counting  4\n"
        "  ocr       1\n"
        "by media:\n"
        "  1 video              2\n"
        "  2 images + 2 videos  1\n"
        "  1 image              1\n"
        "  text                 1\n"
        "by source:\n"
        "  (none)  3\n"
        "  films   2\n"
    )


def test_problems_of_all_files(capsys):
    write("a.jsonl", {}, {"answer": ""})
    write("b.jsonl", {"videos": "no.mp4"})
    assert main(["data", "check", "a.jsonl", "b.jsonl", "c.jsonl"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        'a.jsonl:2: answer: must be given; is ""',
        "b.jsonl:1: there is no file no.mp4",
        "c.jsonl: cannot be read: No such file or directory",
        "3 problems: a run would read none of it",
    ]


def test_settings_of_a_run(capsys):
    Path("media").mkdir()
    Path("media/c.mp4").write_bytes(b"x")
    write("a.jsonl", {"clip": "c.mp4"})
    Path("run.yaml").write_text("data: {media_root: media}\n")
    assert main(["data", "check", "a.jsonl", "--config", "run.yaml", "--set", "data.keys.videos=clip"]) == 0
    assert "1 video  1" in capsys.readouterr().out
    assert main(["data", "check", "a.jsonl", "--set", "data.keys.videos=clip"]) == 2
    assert "a.jsonl:1: there is no file c.mp4" in capsys.readouterr().err


def test_without_files():
    with pytest.raises(SystemExit) as caught:
        main(["data", "check"])
    assert caught.value.code == 2
