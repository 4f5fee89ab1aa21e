"""Which groups are kept, and what happens when there are too few."""

from __future__ import annotations

import pytest

from evr1_core.api import Evr1Error
from evr1_core.api.filters import DynamicFilter, differs, keeps, pass_at_k, pass_rate


@pytest.mark.parametrize(
    ("accuracies", "kept"),
    [([0, 1], True), ([0.3, 0.3 + 1e-7], False), ([1, 1], False), ([], False), ([None, 1], False), ([None, 1, 0], True)],
)
def test_a_group_must_differ(accuracies, kept):
    assert differs(accuracies) is kept


def test_the_band_is_open():
    assert not differs([0, 0.5], low=0.25)
    assert not differs([0.5, 1], high=0.75)
    assert differs([0, 1], low=0.25, high=0.75)


def test_too_few_groups_are_topped_up_with_the_first_others():
    found = DynamicFilter[str](target=3, max_tries=2)
    found.add([("a", [1, 1]), ("b", [0, 1])])
    assert not found.done
    found.add([("c", [0, 0]), ("d", [0, 0])])
    assert found.done
    assert not found.complete
    assert (found.kept, found.chosen(), found.surplus) == (["b"], ["b", "a", "c"], 0)


def test_no_later_batch_brings_back_what_is_no_candidate():
    """Against a filter that remembers everything, over random batches."""
    import random

    for seed in range(200):
        draw = random.Random(seed)
        found = DynamicFilter[int](target=draw.randint(1, 4), max_tries=5)
        held, keys = set(), iter(range(1000))
        while not found.done:
            batch = [(next(keys), [0, draw.choice((0, 0, 1))]) for _ in range(found.target)]
            found.add(batch)
            held = {key for key, _ in batch} | held
            held &= set(found.candidates)
            assert held == set(found.candidates)
        assert len(found.candidates) == found.target


def test_nothing_to_learn_from_is_an_error():
    found = DynamicFilter[str](target=1, max_tries=1)
    found.add([("a", [1, 1])])
    with pytest.raises(Evr1Error, match="none of 1 groups in 1 batches"):
        found.chosen()


@pytest.mark.parametrize("tries", [0, -1])
def test_no_limit(tries):
    with pytest.warns(UserWarning, match="a step goes on for ever"):
        found = DynamicFilter[str](target=1, max_tries=tries)
    for _ in range(50):
        found.add([("a", [1, 1])])
    assert not found.done


def test_pass_rates():
    rate = pass_rate([1.0, 0.5, 0.49, 0.0], 0.5)
    assert rate == 0.5
    assert keeps(rate)
    assert not keeps(1.0)
    assert not keeps(0.3, low=0.3)


def test_best_of_k_by_counting():
    """Against counting all choices of k among n."""
    from itertools import combinations

    for num in range(1, 7):
        for correct in range(num + 1):
            for k in range(1, num + 1):
                picks = list(combinations(range(num), k))
                hits = sum(any(place < correct for place in pick) for pick in picks)
                assert pass_at_k(num, correct, k) == pytest.approx(hits / len(picks))
    with pytest.raises(ValueError, match="k must be in"):
        pass_at_k(4, 1, 5)
