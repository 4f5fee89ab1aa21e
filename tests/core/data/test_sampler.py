from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evr1_core.data.sampler import EpochSampler

sizes = st.integers(1, 12)


@given(sizes, sizes, st.integers(0, 3), st.booleans(), st.integers(1, 60))
def test_every_record_once_an_epoch_and_once_a_batch(num_samples, batch, seed, shuffle, count):
    batches = list(islice(EpochSampler(num_samples, batch, seed=seed, shuffle=shuffle), count))
    drawn = [number for each in batches for number in each]
    assert len(drawn) == count * batch
    for start in range(0, len(drawn) - num_samples + 1, num_samples):
        assert sorted(drawn[start : start + num_samples]) == list(range(num_samples))
    if num_samples >= batch:
        assert all(len(set(each)) == batch for each in batches)


@given(sizes, sizes, st.integers(0, 40), st.booleans())
def test_resuming_goes_on_in_the_same_order(num_samples, batch, drawn, shuffle):
    whole = list(islice(EpochSampler(num_samples, batch, seed=1, shuffle=shuffle), drawn + 15))
    first = EpochSampler(num_samples, batch, seed=1, shuffle=shuffle)
    for _ in range(drawn):
        next(first)
    second = EpochSampler(num_samples, batch, seed=1, shuffle=shuffle)
    second.load_state_dict(first.state_dict())
    assert second.epoch == first.epoch == drawn * batch // num_samples
    assert list(islice(second, 15)) == whole[drawn:]


def test_without_shuffling_the_order_is_that_of_the_file():
    assert list(islice(EpochSampler(5, 2, shuffle=False), 5)) == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]


def test_a_batch_larger_than_an_epoch_wraps():
    (batch,) = islice(EpochSampler(2, 5, shuffle=False), 1)
    assert batch == [0, 1, 0, 1, 0]


def test_epochs_and_seeds_have_orders_of_their_own():
    def order(seed, epoch):
        return list(islice(EpochSampler(50, 50, seed=seed), epoch + 1))[epoch]

    orders = [tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(orders)) == 4
    assert order(0, 1) == order(0, 1)


def test_epochs_are_counted():
    sampler = EpochSampler(4, 3, shuffle=False)
    assert [(next(sampler), sampler.epoch)[1] for _ in range(5)] == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("other", [(9, 2, {}), (8, 3, {}), (8, 2, {"seed": 1}), (8, 2, {"shuffle": False})])
def test_another_order_is_refused(other):
    num_samples, batch, kwargs = other
    with pytest.raises(ValueError, match="it would draw other records"):
        EpochSampler(num_samples, batch, **kwargs).load_state_dict(EpochSampler(8, 2).state_dict())


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0)])
def test_nothing_to_draw_from(sizes):
    with pytest.raises(ValueError, match="must be > 0"):
        EpochSampler(*sizes)


def test_a_long_run_keeps_few_orders():
    sampler = EpochSampler(10, 4)
    for _ in range(500):
        next(sampler)
    assert len(sampler._orders) <= 3
