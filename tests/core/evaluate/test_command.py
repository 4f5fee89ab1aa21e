"""The command line: listing, comparing, bad input without a traceback."""

from __future__ import annotations

import json

import pytest

from evr1_core.cli.main import main
from evr1_core.evaluate.listing import installed
from tests.tiny import tiny_folder


def test_listing_says_what_is_found_and_what_is_missing(root, tmp_path, capsys):
    assert main(["eval", "--list", "--benchmarks", "livesports3k_qa", "--data", str(root)]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "benchmark"
    assert line.split()[-5:] == ["official", "12", "3", "of", "3"]
    (root / "livesports3k_qa" / "videos" / "v0.mp4").rename(tmp_path / "v0.mp4")
    try:
        main(["eval", "--list", "--benchmarks", "livesports3k_qa", "--data", str(root)])
        assert "livesports3k_qa: 1 videos are missing in" in capsys.readouterr().out
    finally:
        (tmp_path / "v0.mp4").rename(root / "livesports3k_qa" / "videos" / "v0.mp4")
    main(["eval", "--list", "--data", str(tmp_path)])
    out = capsys.readouterr().out
    assert all(name in out for name in installed())
    assert "livesports3k_qa: none of livesports3k_qa/LiveSports-3K-QA.json" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--model: must be given"),
        (["--model", "TINY", "--data", "DATA"], "--benchmarks: name some, or say all"),
        (["--model", "TINY", "--data", "nowhere", "--benchmarks", "livesports3k_qa"], "--data: there is no folder nowhere"),
        (["--model", "TINY", "--data", "DATA", "--benchmarks", "livesport"], "did you mean 'livesports3k_qa'?"),
        (["--model", "nowhere", "--data", "DATA", "--benchmarks", "livesports3k_qa"], "there is no folder nowhere"),
        (
            ["--model", "TINY", "--data", "EMPTY", "--benchmarks", "livesports3k_qa"],
            "livesports3k_qa: there are no annotations; looked",
        ),
        (["--responses", "none.jsonl", "--data", "DATA", "--benchmarks", "livesports3k_qa"], "there is no file none.jsonl"),
        (
            ["--set", "judge.base_url=http://x/v1", "--model", "TINY", "--data", "DATA", "--benchmarks", "livesports3k_qa"],
            "judge.model",
        ),
        (["compare", "a"], "must be `evr1 eval compare RUN_A RUN_B`"),
        (["compare", "EMPTY", "EMPTY"], "holds no results.json"),
    ],
)
def test_bad_input(words, message, root, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    places = {"TINY": str(tiny_folder()), "DATA": str(root), "EMPTY": str(tmp_path / "empty")}
    assert main(["eval", *(places.get(word, word) for word in words)]) == 2
    assert message in capsys.readouterr().err


def test_two_runs_are_compared(root, tmp_path, capsys):
    for name, letters in (("a", "A" * 12), ("b", "ABCDABCDABCZ")):
        rows = [{"uid": f"livesports3k_qa/{n}", "response": letter} for n, letter in enumerate(letters)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        words = ["--data", str(root), "--responses", str(tmp_path / f"{name}.jsonl"), "--output", str(tmp_path / name)]
        assert main(["eval", "--benchmarks", "all", *words]) == 0
    capsys.readouterr()
    assert main(["eval", "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--flips", "2"]) == 0
    head, line, *rest = capsys.readouterr().out.splitlines()
    assert head.split() == ["benchmark", "questions", "A", "B", "B", "-", "A", "p", "better", "worse"]
    values = line.split()
    assert values[:5] == ["livesports3k_qa", "12", "25.00", "91.67", "+66.67"]
    assert float(values[5]) < 0.02
    assert values[6:] == ["8", "0"]
    assert rest == ["livesports3k_qa, better: livesports3k_qa/1, livesports3k_qa/10, ..."]
