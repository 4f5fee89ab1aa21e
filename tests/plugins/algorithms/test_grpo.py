"""Group-normalised advantages and the clipped loss, against worked numbers."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import LossBatch, ScoreBatch
from evr1_core.api.tensors import AGGREGATIONS, place_on_last_token
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.sft import SupervisedFineTuning

OLD = [[-1.0, -0.5, -2.0], [-0.7, -2.5, -1.0]]
NEW = [[-0.8, -0.9, -1.6], [-1.1, -1.0, -1.0]]
ADVANTAGES = [[1.2, 1.2, 1.2], [-0.8, -0.8, 0.0]]
MASK = [[True, True, True], [True, True, False]]


def score_batch(scores, group_ids, lengths):
    rewards = torch.tensor(scores, dtype=torch.float64)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return ScoreBatch(
        rewards=rewards,
        components={},
        group_ids=torch.tensor(group_ids),
        offline=torch.zeros(len(scores), dtype=torch.bool),
        judged=torch.ones(len(scores), dtype=torch.bool),
        mask=mask,
        token_rewards=place_on_last_token(rewards, mask),
    )


def loss_batch(requires_grad=False, **changes):
    values = {
        "logprobs": torch.tensor(NEW, dtype=torch.float64, requires_grad=requires_grad),
        "old_logprobs": torch.tensor(OLD, dtype=torch.float64),
        "advantages": torch.tensor(ADVANTAGES, dtype=torch.float64),
        "mask": torch.tensor(MASK),
        "offline": torch.zeros(2, dtype=torch.bool),
        "global_tokens": 5,
        "global_sequences": 2,
        "max_tokens": 8,
    }
    return LossBatch(**(values | changes))


def test_advantages_of_two_groups():
    batch = score_batch([1, 0, 0.5, 0, 0.7, 0.7, 0.7, 0.7], [0, 0, 0, 0, 1, 1, 1, 1], [2, 4, 3, 1, 3, 2, 4, 1])
    values = GRPO().advantages(batch).values
    expected = torch.tensor([1.30557969, -0.78334782, 0.26111594, -0.78334782, 0, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(values, expected.unsqueeze(1) * batch.mask, atol=1e-6, rtol=0)


def test_permuting_rows_permutes_advantages():
    scores, groups, lengths = [0.2, 1.1, 0.9, 1.1, -0.3], [0, 1, 0, 1, 0], [3, 1, 5, 2, 4]
    order = [4, 2, 0, 3, 1]
    values = GRPO().advantages(score_batch(scores, groups, lengths)).values
    shuffled = score_batch([scores[i] for i in order], [groups[i] for i in order], [lengths[i] for i in order])
    torch.testing.assert_close(GRPO().advantages(shuffled).values, values[order])


def test_equal_rewards_in_float32_give_no_signal():
    batch = score_batch([0.7] * 8, [0] * 8, [2] * 8)
    assert not GRPO().advantages(batch).values.any()


@pytest.mark.parametrize(
    ("right", "good", "bad"), [(1, 2.47486673, -0.35355239), (4, 0.93541260, -0.93541260), (7, 0.35355239, -2.47486673)]
)
def test_binary_groups_of_eight(right, good, bad):
    values = GRPO().advantages(score_batch([1.0] * right + [0.0] * (8 - right), [0] * 8, [1] * 8)).values[:, 0]
    assert values.tolist() == pytest.approx([good] * right + [bad] * (8 - right), abs=1e-6)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token-mean", -0.15321347),
        ("seq-mean-token-mean", 0.12565544),
        ("seq-mean-token-sum", -0.38303368),
        ("seq-mean-token-sum-norm", -0.04787921),
    ],
)
def test_loss_by_aggregation(aggregation, expected):
    assert float(GRPO(aggregation=aggregation).policy_loss(loss_batch()).loss) == pytest.approx(expected, abs=1e-6)


def test_gradient_and_metrics():
    batch = loss_batch(requires_grad=True)
    result = GRPO().policy_loss(batch)
    result.loss.backward()
    assert batch.logprobs.grad.flatten().tolist() == pytest.approx([-0.29313666, -0.16087681, 0, 0, 0, 0], abs=1e-6)
    shares = {name: float(a / b) for name, (a, b) in result.metrics.items()}
    assert shares["actor/pg_clipfrac"] == pytest.approx(0.4)
    assert shares["actor/pg_clipfrac_lower"] == pytest.approx(0.2)
    assert shares["actor/ppo_kl"] == pytest.approx(-0.26)


def test_loss_without_dual_clip():
    assert float(GRPO(dual_clip=None).policy_loss(loss_batch()).loss) == pytest.approx(0.08385678, abs=1e-6)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_parts_add_up_to_the_whole(aggregation):
    algorithm = GRPO(aggregation=aggregation)
    whole = float(algorithm.policy_loss(loss_batch()).loss)
    rows = [
        loss_batch(
            logprobs=torch.tensor(NEW[i : i + 1], dtype=torch.float64),
            old_logprobs=torch.tensor(OLD[i : i + 1], dtype=torch.float64),
            advantages=torch.tensor(ADVANTAGES[i : i + 1], dtype=torch.float64),
            mask=torch.tensor(MASK[i : i + 1]),
            offline=torch.zeros(1, dtype=torch.bool),
        )
        for i in range(2)
    ]
    assert sum(float(algorithm.policy_loss(row).loss) for row in rows) == pytest.approx(whole, abs=1e-12)


def test_stored_rows_are_left_out_of_the_metrics():
    result = GRPO().policy_loss(loss_batch(offline=torch.tensor([False, True])))
    assert float(result.metrics["actor/ppo_kl"][1]) == 3.0


def test_masked_tokens_may_be_impossible():
    new = torch.tensor([[-0.8, -0.9, -1.6], [-1.1, -1.0, float("-inf")]], dtype=torch.float64)
    assert float(GRPO().policy_loss(loss_batch(logprobs=new)).loss) == pytest.approx(-0.15321347, abs=1e-6)


@pytest.mark.parametrize("options", [{"clip_low": -0.1}, {"clip_low": 1.5}, {"dual_clip": 1.1}, {"aggregation": "mean"}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        GRPO(**options)


def test_supervised_loss_is_the_mean_negative_log_probability():
    batch = loss_batch(advantages=torch.ones(2, 3, dtype=torch.float64))
    assert float(SupervisedFineTuning().policy_loss(batch).loss) == pytest.approx((0.8 + 0.9 + 1.6 + 1.1 + 1.0) / 5)
