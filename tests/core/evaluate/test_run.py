"""Whole evaluations with a tiny real model and real films."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest
from attrs import evolve

from evr1_core.api import EngineError
from evr1_core.cache import frames
from evr1_core.evaluate.run import prepare
from evr1_core.evaluate.settings import load_settings
from evr1_plugins.engines.hf import HuggingFaceEngine


def rows_of(evaluation):
    path = evaluation.works[0].file.path
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run(evaluation):
    try:
        evaluation.ask()
        return evaluation.report()[0]
    finally:
        evaluation.close()


def test_every_question_gets_one_row_and_the_reports_say_how(evaluation, tmp_path, monkeypatch):
    decoded = Counter()
    store = frames.FrameCache._stored
    monkeypatch.setattr(
        frames.FrameCache, "_stored", lambda self, media, *a, **k: (decoded.update([media.path]), store(self, media, *a, **k))[1]
    )
    made = evaluation(f"cache.folder={tmp_path / 'own'}")
    summary = run(made)
    rows = rows_of(made)
    assert sorted(row["uid"] for row in rows) == sorted(f"livesports3k_qa/{n}" for n in range(12))
    assert set(decoded.values()) == {1}  # four questions a film, one decoding
    assert len(decoded) == 3
    assert {row["status"] for row in rows} == {"answered"}
    assert all(row["num_tokens"] <= 8 and row["prompt_tokens"] > 0 for row in rows)
    counts = summary["counts"]
    assert (counts["n_total"], counts["n_published"], counts["n_missing"], counts["n_failed"]) == (12, 1174, 0, 0)
    assert counts["n_truncated"] == sum(row["truncated"] for row in rows)
    assert summary["score"] == pytest.approx(100 * sum(row["scores"]["accuracy"] for row in rows) / 12)
    protocol = summary["protocol"]
    assert protocol["frames"]["video_max_frames"] == 4
    assert len(protocol["prompt"]["sha256"]) == 16
    assert len(protocol["annotations"]["sha256"]) == 64
    assert {"evr1", "torch", "transformers"} <= protocol["versions"].keys()
    assert protocol["model"]["engine"] == "hf"
    out = tmp_path / "out"
    assert json.loads((out / "results.json").read_text())["benchmarks"][0]["score"] == summary["score"]
    assert "| livesports3k_qa | accuracy |" in (out / "report.md").read_text()
    assert "livesports3k_qa,accuracy," in (out / "report.csv").read_text()


def test_a_second_run_asks_nothing_and_says_the_same(evaluation, monkeypatch):
    first = run(evaluation())
    monkeypatch.setattr(HuggingFaceEngine, "__init__", lambda *a, **k: pytest.fail("an engine was built"))
    made = evaluation("workers=1", "engine.options={prompts_per_batch: 2}")
    second = run(made)
    assert len(rows_of(made)) == 12
    assert first["scores"] == second["scores"]
    assert first["counts"] == second["counts"]


def test_other_settings_ask_anew_and_leave_the_old_rows(evaluation):
    run(evaluation())
    made = evaluation("decoding.max_tokens=2")
    assert "12 rows" in made.notes[0]
    run(made)
    rows = rows_of(made)
    assert len(rows) == 24
    assert len({row["settings"] for row in rows}) == 2


def test_batches_do_not_change_the_answers(evaluation, tmp_path):
    alone = evaluation("engine.options={prompts_per_batch: 1}", output=tmp_path / "alone")
    run(alone)
    together = evaluation(output=tmp_path / "together")
    run(together)
    assert {row["uid"]: row["response"] for row in rows_of(alone)} == {row["uid"]: row["response"] for row in rows_of(together)}


def test_a_missing_and_a_broken_film_are_wrong_answers(evaluation, root, tmp_path):
    data = tmp_path / "broken"
    shutil.copytree(root, data)  # with the times of change, so that stored frames are found
    (data / "livesports3k_qa" / "videos" / "v0.mp4").unlink()
    (data / "livesports3k_qa" / "videos" / "v1.mp4").write_bytes(b"no film")
    made = evaluation(data=data)
    summary = run(made)
    counts = summary["counts"]
    assert (counts["n_total"], counts["n_failed"], counts["n_failed_media"], counts["n_missing"]) == (12, 8, 8, 0)
    failed = [row for row in rows_of(made) if row["status"] == "media"]
    assert {row["error"].partition(":")[0] for row in failed} >= {"missing"}
    assert all(row["scores"] == {"accuracy": 0.0} for row in failed)
    right = sum(row["scores"]["accuracy"] for row in rows_of(made))
    assert summary["score"] == pytest.approx(100 * right / 12)  # of all, not of those that were answered
    shutil.copytree(root, data, dirs_exist_ok=True)
    assert not evaluation(data=data).works[0].todo()
    again = evaluation(data=data, retry_failed=True)
    assert run(again)["counts"]["n_failed"] == 0


def test_a_prompt_that_is_too_long_is_a_row(evaluation):
    summary = run(evaluation("max_prompt_tokens=20"))
    assert summary["counts"]["n_failed_prompt"] == 12
    assert "max_prompt_tokens = 20" in summary["failures"][0]


def test_one_request_that_breaks_the_engine_costs_one_row(evaluation, monkeypatch):
    decode = HuggingFaceEngine._decode

    def broken(self, requests):
        if any(request.uid.endswith("/5") for request in requests):
            raise RuntimeError("out of memory")
        return decode(self, requests)

    monkeypatch.setattr(HuggingFaceEngine, "_decode", broken)
    made = evaluation()
    assert run(made)["counts"]["n_failed_engine"] == 1
    (row,) = (row for row in rows_of(made) if row["status"] == "engine")
    assert (row["uid"], row["error"]) == ("livesports3k_qa/5", "RuntimeError: out of memory")


def test_an_engine_that_answers_nothing_ends_the_run(evaluation, monkeypatch):
    def broken(self, requests):
        raise RuntimeError("no device")

    monkeypatch.setattr(HuggingFaceEngine, "_decode", broken)
    made = evaluation()
    with pytest.raises(EngineError, match="8 questions in a row; the last: no device"):
        made.ask()
    made.close()
    assert len(rows_of(made)) == 7


def test_limit_is_said(evaluation):
    from evr1_core.evaluate.report import remarks

    summary = run(evaluation("limit=5"))
    assert summary["counts"]["n_total"] == 5
    assert remarks([summary]) == ["livesports3k_qa: the first 5 questions only (limit)"]


def test_rows_can_be_scored_again(evaluation, root, tmp_path):
    data = tmp_path / "gap"
    shutil.copytree(root, data)
    (data / "livesports3k_qa" / "videos" / "v0.mp4").unlink()
    first = evaluation(data=data)
    before = run(first)
    flags = {"data": str(data), "output": str(tmp_path / "again"), "benchmarks": ["livesports3k_qa"]}
    file = first.works[0].file.path
    again = prepare(load_settings("ref", [], flags, "ref"), responses=file)
    again.take(file)
    after = again.report()[0]
    again.close()
    assert after["scores"] == before["scores"]
    assert {name: after["counts"][name] for name in before["counts"]} == before["counts"]


def test_reasoning_that_the_template_opened_is_no_answer(evaluation, monkeypatch):
    from evr1_core.api import ModelFamily

    monkeypatch.setattr(ModelFamily, "opens_thinking", lambda self, processor: True)
    decode = HuggingFaceEngine._decode

    def said(self, requests):
        texts = ["It may be A.</think>B", "It may be A, and", "A"]
        answers = decode(self, requests)
        return [[evolve(group[0], text=texts[number % 3])] for number, group in enumerate(answers)]

    monkeypatch.setattr(HuggingFaceEngine, "_decode", said)
    made = evaluation()
    summary = run(made)
    rows = rows_of(made)
    assert sorted({(row["response"], row["answer"], row["truncated"]) for row in rows}, key=str) == [
        ("A", None, True),
        ("It may be A, and", None, True),
        ("It may be A.</think>B", "B", rows[0]["truncated"]),
    ]
    assert summary["protocol"]["model"]["opens_thinking"] == "true"
