"""The plan of mixed groups and the rows of stored trajectories, against worked cases."""

from __future__ import annotations

import pytest

from evr1_core.rollout.collect import mix_plan, seed_of
from evr1_core.rollout.groups import offline_row


def test_plan_replaces_where_the_group_is_weak_and_the_trajectory_good():
    plan = mix_plan(
        [[0, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        [True, True, False, True],
        trigger_below=0.5,
        offline_score=[1.0, 1.0, None, 0.2],
        min_offline=0.5,
    )
    assert plan == [True, False, False, False]


def test_plan_without_limits_replaces_every_group_that_has_a_trajectory():
    plan = mix_plan([[1.0, 1.0], [0.0, None]], [True, False], trigger_below=None, offline_score=[None, None], min_offline=None)
    assert plan == [True, False]


def test_an_unjudged_response_counts_as_zero():
    plan = mix_plan([[1.0, None]], [True], trigger_below=0.6, offline_score=[None], min_offline=None)
    assert plan == [True]


@pytest.mark.parametrize(
    ("ids", "limit", "expected", "truncated"),
    [
        ([5, 6, 7], 6, [5, 6, 7, 9], False),
        ([5, 9, 7, 6], 6, [5, 9], False),
        ([5, 8, 7], 6, [5, 8], False),
        ([1, 2, 3, 4, 5, 6, 7, 1], 6, [1, 2, 3, 4, 5, 6], True),
        ([1, 2, 3, 4, 5], 6, [1, 2, 3, 4, 5, 9], False),
        ([1, 2, 3, 4, 5, 6, 9], 6, [1, 2, 3, 4, 5, 6], True),
    ],
)
def test_stored_rows_end_once_and_fit(ids, limit, expected, truncated):
    assert offline_row(ids, [9, 8], limit) == (expected, truncated)


def test_seeds_depend_on_every_part():
    assert seed_of(1, 2, "a") == seed_of(1, 2, "a")
    assert len({seed_of(1, 2, "a"), seed_of(2, 1, "a"), seed_of(1, 2, "b"), seed_of(12, "a")}) == 4
