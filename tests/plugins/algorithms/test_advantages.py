"""What the worked examples leave open: stored rows in each baseline, rows that were not judged, components of unlike scale."""

from __future__ import annotations

import pytest
import torch

from evr1_core.api import Evr1Error, LossBatch, ScoreBatch
from evr1_core.api.tensors import place_on_last_token
from evr1_plugins.algorithms.gdpo import GDPO
from evr1_plugins.algorithms.grpo import GRPO
from evr1_plugins.algorithms.grpo_passk import GRPOPassK
from evr1_plugins.algorithms.luffy import LUFFY
from evr1_plugins.algorithms.opo import OPO
from evr1_plugins.algorithms.remax import ReMax
from evr1_plugins.algorithms.rloo import RLOO


def batch(scores, *, offline=None, judged=None, lengths=None, components=None, groups=None, greedy=None):
    rewards = torch.tensor(scores, dtype=torch.float64)
    rows = len(scores)
    lengths = torch.tensor(lengths or [1] * rows)
    judged = torch.tensor(judged or [True] * rows)
    mask = (torch.arange(int(lengths.max())) < lengths.unsqueeze(1)) & judged.unsqueeze(1)
    return ScoreBatch(
        rewards=rewards,
        components={name: torch.tensor(values, dtype=torch.float64) for name, values in (components or {}).items()},
        group_ids=torch.tensor(groups or [0] * rows),
        offline=torch.tensor(offline or [False] * rows),
        judged=judged,
        mask=mask,
        token_rewards=place_on_last_token(rewards, mask),
        greedy_rewards=None if greedy is None else torch.tensor(greedy, dtype=torch.float64),
    )


def first(algorithm, scored):
    return algorithm.advantages(scored).values[:, 0].tolist()


STORED = [False, False, False, True]


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        # sampled: mean 0.2, others' means 0.3 and 0; stored: less the mean of the three
        (RLOO, [0.0 - 0.3, 0.0 - 0.3, 0.6 - 0.0, 1.0 - 0.2]),
        # lengths 1, 1, 2 of the sampled: (0 + 0 + 1.2) / 4
        (OPO, [-0.3, -0.3, 0.3, 0.7]),
        # the lead of the best, 0.4, over the deviation of 0, 0, 0.6: sqrt(0.12)
        (GRPOPassK, [0.0, 0.0, 0.0, 0.4 / (0.12**0.5 + 1e-6)]),
        (GRPO, [-0.2 / (0.12**0.5 + 1e-6)] * 2 + [0.4 / (0.12**0.5 + 1e-6), 0.8 / (0.12**0.5 + 1e-6)]),
    ],
)
def test_statistics_without_the_stored_row(algorithm, expected):
    scored = batch([0.0, 0.0, 0.6, 1.0], offline=STORED, lengths=[1, 1, 2, 3])
    assert first(algorithm(baseline_rows="online"), scored) == pytest.approx(expected, abs=1e-12)


def test_one_sampled_row_has_no_others():
    scored = batch([0.2, 1.0], offline=[False, True])
    assert first(RLOO(baseline_rows="online"), scored) == pytest.approx([0.0, 0.8])
    assert first(GRPO(baseline_rows="online"), scored) == pytest.approx([0.0, 0.8], abs=1e-5)


def test_a_group_of_stored_rows_alone_has_its_own_statistics():
    scored = batch([0.0, 1.0], offline=[True, True])
    assert first(GRPO(baseline_rows="online"), scored) == first(GRPO(), scored) == pytest.approx([-0.7071, 0.7071], abs=1e-4)


def test_what_was_not_judged_leaves_the_group():
    scored = batch([0.0, 1.0, 5.0], judged=[True, True, False])
    assert first(RLOO(), scored) == pytest.approx([-1.0, 1.0, 0.0])


def test_a_response_without_tokens_counts_with_its_score():
    scored = batch([0.5, 1.0, 0.0], lengths=[0, 1, 1])
    assert first(RLOO(), scored) == pytest.approx([0.0, 0.75, -0.75])


def test_two_best_have_no_lead():
    assert first(GRPOPassK(), batch([1.0, 0.0, 1.0])) == [0.0, 0.0, 0.0]


def test_remax_needs_no_group():
    assert first(ReMax(), batch([0.7], greedy=[0.5])) == pytest.approx([0.2])


def test_each_component_counts_in_gdpo_whatever_its_scale():
    """Accuracy is 0 or 1, the other component lies within 0.01. In their sum the second is lost; GDPO gives both the same say."""
    accuracy, fine = [1.0, 1.0, 0.0, 0.0], [0.01, 0.0, 0.01, 0.0]
    scored = batch([a + f for a, f in zip(accuracy, fine, strict=True)], components={"accuracy": accuracy, "fine": fine})

    def says(values):  # how much of an advantage goes with accuracy, and how much with the fine component
        a, b, c, d = values
        return (a + b - c - d) / 4, (a + c - b - d) / 4

    by_accuracy, by_fine = says(first(GRPO(), scored))
    assert by_fine / by_accuracy == pytest.approx(0.01)
    by_accuracy, by_fine = says(first(GDPO(weights={"accuracy": 1.0, "fine": 1.0}), scored))
    assert by_fine / by_accuracy == pytest.approx(1.0, rel=2e-4)  # 1e-6 beside a deviation of 0.006


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ({"accuracy": [1.0, 0.0]}, "no reward component 'format'; there are accuracy"),
        ({"accuracy": [1.0, 0.0], "format": [1.0, float("nan")]}, "1 of 2 responses have no reward component 'format'"),
    ],
)
def test_gdpo_refuses_missing_components(components, said):
    with pytest.raises(Evr1Error, match=said):
        GDPO().advantages(batch([1.0, 0.0], components=components))


def stored_loss(**options):
    shape = {"dtype": torch.float64}
    parts = LossBatch(
        logprobs=torch.tensor([[-0.5], [-1.0]], **shape),
        old_logprobs=torch.tensor([[-0.5], [-1.0]], **shape),
        advantages=torch.tensor([[1.0], [-2.0]], **shape),
        mask=torch.ones(2, 1, dtype=torch.bool),
        offline=torch.tensor([False, True]),
        global_tokens=2,
        global_sequences=2,
        max_tokens=4,
    )
    return float(LUFFY(**options).policy_loss(parts).loss)


def test_a_stored_trajectory_is_not_unlearned_when_that_is_asked_for():
    assert stored_loss(off_mode="on_policy") == pytest.approx((-1.0 + 2.0) / 2)
    assert stored_loss(off_drop_negative=True) == pytest.approx(-0.5)


def test_recorded_logprobs_that_are_missing_are_told():
    with pytest.raises(Evr1Error, match="off_mode: `is` needs the log-probabilities"):
        stored_loss(off_mode="is")
