"""The runner: every worked example of the specification, and what it says about a vector that does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evr1_core.conformance.__main__ import main
from evr1_core.conformance.vectors import Vector, differences, read_vectors

FOLDER = Path(__file__).parents[2] / "conformance"
FILES = sorted(FOLDER.glob("*.jsonl"))
VECTORS = [vector for path in FILES for vector in read_vectors(path)]


@pytest.mark.filterwarnings("ignore:gspo")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_worked_example(vector):
    assert differences(vector) == []


def test_ids_are_unique():
    assert len({vector.id for vector in VECTORS}) == len(VECTORS) > 70


def vector(**changes):
    row = {"place": "f:1", "id": "x", "op": "sched.lr", "inputs": {"kind": "constant", "total": 2}, "expected": {"factor": [1, 1]}}
    return Vector(**(row | changes))


def test_the_vector_of_the_other_tests_holds():
    assert differences(vector()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expected": {"factor": [1, 1.00001]}}, "factor[1]: 1.00001 expected, is 1.0 (-1e-05)"),
        ({"expected": {"factor": [1]}}, "factor: [1] expected, is [1.0, 1.0]"),
        ({"expected": {"factors": [1]}}, "factors: [1] expected, there is no such value (there are factor)"),
        ({"expected": {"factor": {"a": 1}}}, 'factor: {"a": 1} expected, is [1.0, 1.0]'),
        ({"inputs": {"kind": "constant"}}, "argument 'total' is missing (given: kind)"),
        (
            {"op": "balance.partition", "inputs": {"seqlens": [3, 4], "k": 2}, "expected": {"max_sum_at_most": 3}},
            "max_sum_at_most: at most 3 expected, is 4",
        ),
    ],
)
def test_each_difference_is_named(changes, said):
    assert differences(vector(**changes)) == [said]


def test_an_unknown_operation_names_the_known_ones():
    (said,) = differences(vector(op="adv"))
    assert "adv.NAME" in said
    assert "sched.lr" in said


def test_bad_options_are_differences_too():
    (row,) = [each for each in VECTORS if each.id == "s3-ppo-token-mean"]
    (said,) = differences(Vector(place="f:1", id="x", op=row.op, inputs={**row.inputs, "dual": 1.1}, expected=row.expected))
    assert "dual_clip must be above" in said


def test_exit_status(tmp_path, capsys):
    good = {"id": "a", "op": "metric.pass_at_k", "inputs": {"cases": [8, 3, 4]}, "expected": {"value": 0.92857143}}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(good) + "\n")
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "1 vectors, 0 differ\n"
    path.write_text(json.dumps(good) + "\n\n" + json.dumps(good | {"id": "b", "expected": {"value": 0.5}}) + "\n")
    assert main([str(path)]) == 1
    assert f"{path}:3: b: metric.pass_at_k: value: 0.5 expected" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no rows"),
        ("[]", "rows.jsonl:1: is no JSON object"),
        ("{", "rows.jsonl:1: "),
        ('{"id": 1, "op": "x"}', "rows.jsonl:1: lacks inputs, expected"),
        ('{"id": 1, "op": "x", "inputs": [], "expected": {}}', "must be objects"),
    ],
)
def test_bad_files_are_told_without_a_traceback(tmp_path, capsys, text, said):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert said in capsys.readouterr().err


OTHER = """
from attrs import define, field
from evr1_core.api import Advantages, Algorithm, LossBatch, LossResult
from evr1_core.api.tensors import by_group, clamp20, ppo_losses, scores_of, spread_over_tokens

@define(kw_only=True)
class Centred(Algorithm):
    "Reward less the mean."
    api = 1
    clip_low: float = field(default=0.5)

    def advantages(self, batch):
        credits = by_group(scores_of(batch), batch.group_ids, batch.judged, lambda r: r - r.mean())
        return Advantages(values=spread_over_tokens(credits, batch.mask))

    def policy_loss(self, batch):
        losses, _, _ = ppo_losses(
            clamp20(batch.logprobs - batch.old_logprobs), batch.advantages, low=self.clip_low, high=0.28, dual=None
        )
        return LossResult(loss=self.mean(losses, batch))
"""


def test_vectors_can_be_put_to_another_plugin(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(OTHER)
    mine = f"{tmp_path}/mine.py:Centred"
    rows = {row["id"]: row for path in FILES for row in map(json.loads, path.read_text().splitlines())}
    chosen = tmp_path / "rows.jsonl"
    chosen.write_text("".join(json.dumps(rows[name]) + "\n" for name in ("s1-dr_grpo", "s3-ppo-no-dual")))
    assert main([str(chosen), "--algo", mine]) == 0
    chosen.write_text(json.dumps(rows["s1-grpo"]))
    assert main([str(chosen), "--algo", mine]) == 1
    assert "seq_adv[0]: 1.30557969 expected" in capsys.readouterr().out
    assert main([str(chosen), "--algo", "nothing_like_it"]) == 2
