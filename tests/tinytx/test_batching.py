"""Batches hold everything once with little padding; windows predict every token once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tinytx.batching import batches_by_length, batches_of_pairs, chunks, pad_batch, padding_share

lengths_and_budget = st.lists(st.integers(0, 30), max_size=60).flatmap(
    lambda lengths: st.tuples(st.just(lengths), st.integers(max([1, *lengths]), 200))
)


def test_a_batch_is_as_wide_as_its_longest_sequence():
    batch = pad_batch([[5], [6, 7, 8], [], [9, 1]], pad_id=11)
    expected = torch.tensor([[5, 11, 11], [6, 7, 8], [11, 11, 11], [9, 1, 11]])
    assert batch.dtype == torch.long
    torch.testing.assert_close(batch, expected)


@given(case=lengths_and_budget, seed=st.integers(0, 5), epoch=st.integers(0, 5))
def test_every_index_stands_in_one_batch_within_the_budget(case, seed, epoch):
    lengths, budget = case
    batches = batches_by_length(lengths, budget, seed=seed, epoch=epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert batch
        assert len(batch) * max(lengths[index] for index in batch) <= budget


def test_grouping_by_length_leaves_little_padding():
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(5, 120, (2000,), generator=generator).tolist()
    grouped = batches_by_length(lengths, 4096, seed=0, epoch=0)
    in_file_order = [list(range(start, start + 32)) for start in range(0, 1984, 32)]
    assert padding_share(lengths, grouped) < 0.05
    assert padding_share(lengths, in_file_order) > 0.4
    assert padding_share([], []) == 0


def test_long_and_short_batches_come_in_mixed_order():
    lengths = sorted([3, 5, 7, 11] * 100)
    widths = [max(lengths[i] for i in batch) for batch in batches_by_length(lengths, 55, seed=0, epoch=0)]
    assert widths != sorted(widths)


def test_a_sequence_longer_than_the_budget_is_a_batch_of_its_own_and_widens_no_other():
    batches = batches_by_length([3, 11, 2, 2, 12, 2], 4, seed=0, epoch=0)
    assert sorted(map(sorted, batches)) in (
        [[0], [1], [2, 3], [4], [5]],
        [[0], [1], [2, 5], [3], [4]],
        [[0], [1], [2], [3, 5], [4]],
    )


@given(ids=st.lists(st.integers(0, 99), max_size=80), max_len=st.integers(1, 25))
def test_every_token_but_the_first_is_a_target_once_and_in_order(ids, max_len):
    windows = chunks(ids, max_len)
    assert [token for window in windows for token in window[1:]] == ids[1:]
    assert [token for window in windows for token in window[:-1]] == ids[:-1]
    assert all(2 <= len(window) <= max_len + 1 for window in windows)


@pytest.mark.parametrize("budget", [7, 20, 1000])
def test_every_pair_is_in_one_batch_of_the_size_allowed(budget):
    src = [1 + (7 * i) % 11 for i in range(101)]
    tgt = [1 + (5 * i) % 13 for i in range(101)]
    batches = batches_of_pairs(src, tgt, budget, seed=3, epoch=1)
    assert sorted(i for batch in batches for i in batch) == list(range(101))
    for batch in batches:
        size = len(batch) * (max(src[i] for i in batch) + max(tgt[i] for i in batch))
        assert size <= budget or len(batch) == 1
    assert batches == batches_of_pairs(src, tgt, budget, seed=3, epoch=1)
    assert len(batches) < 4 or batches != batches_of_pairs(src, tgt, budget, seed=3, epoch=2)


def test_equal_lengths_are_put_together_anew_in_each_epoch():
    first, second = (batches_by_length([7] * 60, 70, seed=0, epoch=epoch) for epoch in (0, 1))
    assert not {frozenset(batch) for batch in first} & {frozenset(batch) for batch in second}
