"""Scores as tensors, and the metrics of a step, by hand."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import Encoded, Sample
from evr1_core.rollout.groups import EncodedPrompt, Group, Response
from evr1_core.rollout.scoring import Scored
from evr1_core.train.credit import group_metrics, length_metrics, score_batch, score_metrics
from evr1_core.train.metrics import Sums
from evr1_core.train.validate import summary


def group(*responses):
    ids = torch.arange(5)
    prompt = EncodedPrompt(
        sample=Sample(uid="u", task="t", problem="?", answer="A"),
        text="",
        clips=(),
        encoded=Encoded(input_ids=ids, token_kind=torch.zeros(5, dtype=torch.int8)),
        position_ids=ids.expand(3, -1),
    )
    return Group(prompt=prompt, responses=list(responses))


def response(length, **changes):
    return Response(text="", token_ids=tuple(range(length)), **({"truncated": False} | changes))


def scored(accuracy, fmt=1.0, judged=True):
    components = {"accuracy": accuracy, "format": fmt} if judged else {"format": fmt}
    total = 0.9 * accuracy + 0.1 * fmt if judged else 0.0
    return Scored(total=total, components=components, accuracy=accuracy if judged else None, parsed=True, judged=judged)


def test_rewards_stand_on_the_last_tokens():
    groups = [group(response(2), response(3)), group(response(1), response(2, offline=True))]
    scores = [[scored(1.0), scored(0.0)], [scored(0.0, judged=False), scored(1.0)]]
    batch = score_batch(groups, scores)
    assert batch.group_ids.tolist() == [0, 0, 1, 1]
    assert batch.offline.tolist() == [False, False, False, True]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True], [False, False, False], [True, True, False]]
    assert batch.token_rewards.tolist() == [[0, 1.0, 0], [0, 0, 0.1], [0, 0, 0], [0, 1.0, 0]]


def test_metrics_leave_stored_and_unjudged_rows_out():
    groups = [group(response(2), response(3)), group(response(1), response(2, offline=True))]
    scores = [[scored(1.0), scored(0.0)], [scored(0.0, judged=False), scored(1.0)]]
    metrics = score_metrics(score_batch(groups, scores)) | group_metrics(scores)
    assert metrics["critic/score/mean"] == pytest.approx(0.55)
    assert metrics["reward/accuracy"] == pytest.approx(0.5)
    assert metrics["mix_policy/off_score"] == pytest.approx(1.0)
    assert metrics["group/zero_std_frac"] == pytest.approx(0.5)
    assert metrics["critic/singleton_groups"] == 1
    assert metrics["group/all_correct_frac"] == pytest.approx(0.5)


def test_lengths_leave_stored_rows_out():
    metrics = length_metrics([group(response(2), response(4, truncated=True), response(9, offline=True))])
    assert (metrics["response_length/mean"], metrics["response_length/max"]) == (3, 4)
    assert metrics["response_length/clip_ratio"] == 0.5
    assert metrics["prompt_length/mean"] == 5


def test_ratios_are_divided_once():
    sums = Sums()
    for numerator, denominator in ((1.0, 1.0), (0.0, 3.0), (0.0, 0.0)):
        sums.ratio("share", torch.tensor(numerator), torch.tensor(denominator))
        sums.add("loss", torch.tensor(numerator))
        sums.largest("max", torch.tensor(denominator))
    sums.ratio("nothing", torch.tensor(0.0), torch.tensor(0.0))
    assert sums.means() == {"share": 0.25, "loss": 1.0, "max": 3.0}


def test_validation_counts_unread_answers_as_wrong_and_unjudged_ones_apart():
    rows = [
        {"task": "multiple choice", "source": "a", "accuracy": 1.0, "parsed": True},
        {"task": "multiple choice", "source": "b", "accuracy": 0.0, "parsed": False},
        {"task": "temporal grounding", "source": "b", "accuracy": None, "parsed": True},
    ]
    metrics = summary(rows)
    assert metrics["val/accuracy"] == 0.5
    assert metrics["val/not_judged"] == 1
    assert metrics["val/multiple_choice/accuracy"] == 0.5
    assert metrics["val/b/accuracy"] == 0.0
    assert "val/temporal_grounding/accuracy" not in metrics
