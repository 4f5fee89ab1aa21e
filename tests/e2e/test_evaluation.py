"""Every benchmark whose real records are at hand, from its file to the report: with its golds as responses, the score is 100."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evr1_core.api.questions import response
from evr1_core.cli.main import main
from evr1_core.evaluate.listing import with_annotations
from evr1_core.evaluate.run import prepare
from evr1_core.evaluate.settings import load_settings

RECORDS = Path(__file__).parents[3] / "shared" / "data" / "benchmarks"


@pytest.mark.skipif(not RECORDS.is_dir(), reason="the published records are not at hand")
def test_golds_as_responses_score_full_marks(tmp_path):
    empty = tmp_path / "none.jsonl"
    empty.write_text("{}")
    flags = {"data": str(RECORDS), "output": str(tmp_path / "plan")}
    names = with_annotations(load_settings("ref", [], flags, "ref").config())
    settings = load_settings("ref", [], flags | {"benchmarks": names}, "ref")
    plan = prepare(settings, responses=empty)
    answers = {
        item.uid: response(item.task, plan.config.style, gold)
        for work in plan.works
        for item in work.items
        if (gold := work.benchmark.gold_answer(item, None)) is not None
    }
    plan.close()
    said = tmp_path / "golds.jsonl"
    said.write_text("\n".join(json.dumps({"uid": uid, "response": text}) for uid, text in answers.items()), "utf-8")
    words = ["--benchmarks", ",".join(names), "--data", str(RECORDS), "--responses", str(said), "--output", str(tmp_path / "out")]
    main(["eval", *words])
    summaries = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["benchmarks"]
    assert [summary["benchmark"] for summary in summaries] == names
    for summary in summaries:
        counts = summary["counts"]
        assert (counts["n_failed"], counts["n_unparsed"], counts["n_truncated"]) == (0, 0, 0), summary["benchmark"]
        assert summary["score"] == pytest.approx(100.0), summary["benchmark"]
        assert summary["strict_score"] == pytest.approx(100.0), summary["benchmark"]
