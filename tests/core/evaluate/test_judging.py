"""Judges: a real server that judges, replies nonsense, or is away."""

from __future__ import annotations

import json
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from evr1_core.api import DataError
from evr1_core.cli.main import main
from tests.core.api.test_judge import Handler, completion

pytest.importorskip("openai")

BENCHMARK = f"{Path(__file__).with_name('openqa.py')}:OpenQA"
QUESTIONS = {"a": "a red square", "b": "a blue circle", "c": "three", "d": "nothing"}
RESPONSES = {"a": "A red square.", "b": "some round thing, azure", "c": "Final answer: 3 dogs", "d": "<think>I am lost"}


@pytest.fixture
def server():
    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.lock, found.counts, found.bodies, found.keys, found.active, found.most = threading.Lock(), {}, [], set(), 0, 0
    found.script = lambda prompt, count: completion("Judgement: 1" if "azure" in prompt else "Judgement: 0")
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def score(tmp_path, capsys):
    """``score(server, "--judge-only")``: (exit status, the rows that count, the summary, what was printed)."""
    data = tmp_path / "data" / "openqa"
    data.mkdir(parents=True)
    rows = [
        {"id": uid, "question": f"What is {uid}?", "answer": gold, "video": f"{uid}.mp4", "kind": uid}
        for uid, gold in QUESTIONS.items()
    ]
    (data / "openqa.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    responses = tmp_path / "said.jsonl"
    said = [{"benchmark": "openqa", "source_id": uid, "response": text} for uid, text in RESPONSES.items()]
    responses.write_text("\n".join(map(json.dumps, said)), "utf-8")

    def run(server, *words):
        sets = []
        if server is not None:
            judge = {"base_url": f"http://127.0.0.1:{server.server_port}/v1", "model": "m", "retries": 0, "concurrency": 2}
            sets = [f"--set=judge.{key}={value}" for key, value in judge.items()]
        where = ["--data", str(tmp_path / "data"), "--output", str(tmp_path / "out"), "--responses", str(responses)]
        status = main(["eval", "--benchmarks", BENCHMARK, *where, *sets, *words])
        lines = (tmp_path / "out" / "openqa" / "rows.jsonl").read_text("utf-8").splitlines()
        kept = {row["uid"].removeprefix("openqa/"): row for row in map(json.loads, lines)}
        summary = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["benchmarks"][0]
        return status, kept, summary, capsys.readouterr().out

    return run


def test_only_what_rules_leave_open_is_judged(score, server):
    status, rows, summary, _ = score(server)
    assert status == 0
    assert {uid: (row["judge"], row["scores"]["accuracy"]) for uid, row in rows.items()} == {
        "a": ("", 1.0),
        "b": ("judged", 1.0),
        "c": ("judged", 0.0),
        "d": ("", 0.0),
    }
    assert (rows["d"]["truncated"], rows["d"]["answer"]) == (True, None)
    assert (summary["score"], summary["scores"]["kind=b/accuracy"]) == (50.0, 100.0)
    counts = summary["counts"]
    assert (counts["n_judged"], counts["n_unparsed"], counts["n_truncated"], counts["n_unjudged"]) == (2, 1, 1, 0)
    assert summary["protocol"]["frames"] is summary["protocol"]["decoding"] is None  # nobody knows how they were asked for
    assert len(server.bodies) == 2
    assert '"a blue circle"' in server.bodies[0]["messages"][0]["content"] + server.bodies[1]["messages"][0]["content"]


def test_without_a_judge_rows_wait_and_are_judged_later(score, server):
    status, rows, summary, out = score(None)
    assert (status, summary["score"], summary["counts"]["n_unjudged"]) == (1, 25.0, 2)
    assert "openqa: 2 answers wait for a judge and count as wrong; run with --judge-only" in out
    status, rows, summary, _ = score(server, "--judge-only")
    assert (status, summary["score"], summary["counts"]["n_unjudged"]) == (0, 50.0, 0)
    assert [row["judge"] for row in rows.values()] == ["", "judged", "judged", ""]
    score(server, "--judge-only")
    assert len(server.bodies) == 2  # nothing is judged twice


def test_the_same_command_with_a_judge_judges_what_waits(score, server):
    score(None)
    status, _, summary, _ = score(server)
    assert (status, summary["score"], len(server.bodies)) == (0, 50.0, 2)


def test_an_outage_leaves_the_rows(score, server):
    server.script = lambda prompt, count: lambda handler: handler.reply(503, b"{}")
    status, _, summary, _ = score(server)
    assert (status, summary["score"], summary["counts"]["n_unjudged"]) == (1, 25.0, 2)


def test_nonsense_is_asked_for_again_and_then_wrong(score, server):
    server.script = lambda prompt, count: completion("Hard to say.")
    status, rows, summary, _ = score(server)
    assert (status, summary["counts"]["n_judge_failed"], summary["counts"]["n_unjudged"]) == (0, 2, 0)
    assert set(server.counts.values()) == {2}
    assert "no clear verdict in 2 replies" in rows["b"]["note"]


def test_responses_that_belong_to_nothing(score, tmp_path):
    score(None)
    (tmp_path / "said.jsonl").write_text(
        '{"uid": "openqa/z", "response": "x"}\n{"uid": "openqa/a"}\n{"uid": "openqa/a", "response": "x"}\n'
    )
    from evr1_core.evaluate.responses import read_responses
    from evr1_core.evaluate.run import prepare
    from evr1_core.evaluate.settings import load_settings

    flags = {"data": str(tmp_path / "data"), "output": str(tmp_path / "other"), "benchmarks": [BENCHMARK]}
    made = prepare(load_settings(None, [], flags, "ref"), responses=tmp_path / "said.jsonl")
    with pytest.raises(DataError) as caught:
        read_responses(tmp_path / "said.jsonl", made.works)
    made.close()
    assert [problem.partition(": ")[2] for problem in caught.value.problems] == [
        "belongs to no question of these benchmarks; give `uid`, or `benchmark` and `source_id`",
        "a row must have `response`, a text",
    ]
