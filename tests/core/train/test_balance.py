"""Parts of like work, against all possible partitions of a few rows."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.api import ConfigError
from evr1_core.train.balance import attention_workload, by_budget, partition
from evr1_core.train.flops import peak_of


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=24), st.data())
def test_every_row_is_in_one_part(lengths, data):
    k = data.draw(st.integers(1, len(lengths)))
    equal = len(lengths) % k == 0 and data.draw(st.booleans())
    parts = partition(lengths, k, equal_size=equal)
    assert sorted(index for part in parts for index in part) == list(range(len(lengths)))
    assert len(parts) == k
    assert all(parts)
    assert not equal or {len(part) for part in parts} == {len(lengths) // k}
    assert parts == partition(lengths, k, equal_size=equal)


def best_of_halves(lengths, equal):
    rows = range(len(lengths))
    sizes = [len(lengths) // 2] if equal else range(1, len(lengths))
    choices = (choice for size in sizes for choice in itertools.combinations(rows, size))
    return min(max(sum(lengths[i] for i in choice), sum(lengths) - sum(lengths[i] for i in choice)) for choice in choices)


@pytest.mark.parametrize(("equal", "slack"), [(True, 1.03), (False, 1.05)])
def test_halves_are_close_to_the_best(equal, slack):
    draw = random.Random(0)
    for _ in range(60):
        lengths = [draw.randint(1, 4000) for _ in range(10)]
        got = max(sum(lengths[i] for i in part) for part in partition(lengths, 2, equal_size=equal))
        assert got <= slack * best_of_halves(lengths, equal)


def test_work_is_what_is_balanced():
    assert attention_workload(1000) == 1000**2 + 24_576_000
    parts = partition([10, 6, 6, 1], 2, equal_size=False, workload=lambda length: length**2)
    assert parts == [[0], [1, 2, 3]]


@pytest.mark.parametrize(("rows", "k", "equal"), [(3, 4, False), (3, 0, False), (3, 2, True)])
def test_what_cannot_be_done(rows, k, equal):
    with pytest.raises(ValueError, match="cannot be put into"):
        partition([1] * rows, k, equal_size=equal)


def test_the_sum_alone_does_not_tell_how_many_passes_are_needed():
    assert by_budget([6, 6, 6], 10) == [[0], [1], [2]]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_no_pass_exceeds_the_budget(lengths):
    parts = by_budget(lengths, 50)
    assert all(sum(lengths[i] for i in part) <= 50 for part in parts)
    assert sorted(i for part in parts for i in part) == list(range(len(lengths)))


def test_a_row_beyond_the_budget_is_an_error():
    with pytest.raises(ConfigError, match="a row of 11 tokens is longer than the budget of 10"):
        by_budget([3, 11], 10)


@pytest.mark.parametrize(
    ("device", "peak"), [("NVIDIA H100 80GB HBM3", 989.0), ("NVIDIA H20", 148.0), ("NVIDIA A100-SXM4-80GB", 312.0)]
)
def test_peaks_by_device_name(device, peak):
    assert peak_of(device) == peak


def test_an_unknown_device_has_no_peak():
    assert peak_of("cpu") is None
