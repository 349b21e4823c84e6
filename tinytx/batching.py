"""Batches of token sequences with little padding, and windows of long texts."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from tinytx.settings import require


def pad_batch(sequences: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Stack B sequences, padded on the right to the length T of the longest: a LongTensor of shape (B, T).

    Examples
    --------
    >>> pad_batch([[7, 8, 9], [7]], pad_id=0)
    tensor([[7, 8, 9],
            [7, 0, 0]])
    """
    return PackedSequences(sequences, pad_id).rows(range(len(sequences)))


class PackedSequences:
    """Sequences laid end to end in one tensor, from which padded batches are cut without a Python loop."""

    def __init__(self, sequences: Iterable[Sequence[int]], pad_id: int) -> None:
        arrays = []
        for ids in sequences:
            array = np.asarray(ids)
            if array.size and array.dtype.kind not in "iu":  # numpy would cut them to integers
                raise TypeError(f"ids must be integers, got {array.dtype}")
            arrays.append(array.astype(np.int32))
        require(arrays, "sequences must hold at least one sequence", "none")
        self.flat, self.pad_id = torch.from_numpy(np.concatenate(arrays)), pad_id
        self.lengths = [len(array) for array in arrays]
        self._lengths = torch.tensor(self.lengths)
        self._starts = self._lengths.cumsum(0) - self._lengths

    def filled(self, flat: Tensor, pad_id: int) -> PackedSequences:
        """Sequences of the same lengths with other values."""
        other = copy.copy(self)
        other.flat, other.pad_id = flat, pad_id
        return other

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, indices: Sequence[int]) -> Tensor:
        """The sequences at ``indices`` as a LongTensor (B, T), padded on the right to their longest."""
        chosen = torch.as_tensor(indices)
        lengths = self._lengths[chosen]
        offsets = torch.arange(int(lengths.max()))
        real = offsets < lengths[:, None]  # (B, T)
        positions = (self._starts[chosen][:, None] + offsets).clamp_(max=len(self.flat) - 1)
        return torch.where(real, self.flat[positions], self.pad_id).long()


def batches_by_length(
    lengths: Sequence[int], tokens_per_batch: int, *, seed: int, epoch: int
) -> list[list[int]]:
    """Group sequences of similar length, so that a batch holds little padding.

    Sequences are shuffled, then sorted by length, cut into batches as large as the budget allows, and the
    batches are shuffled. Equal arguments give equal batches.

    Parameters
    ----------
    lengths : sequence of int
        Length of each sequence, from 0 up.
    tokens_per_batch : int
        Largest number of positions in a padded batch: sequences times the length of the longest. A longer
        sequence is a batch of its own.

    Returns
    -------
    list of list of int
        Indices into `lengths`, each in exactly one batch.

    Examples
    --------
    >>> batches = batches_by_length([5, 2, 5, 2, 2], tokens_per_batch=10, seed=0, epoch=0)
    >>> sorted(sorted(batch) for batch in batches)
    [[0, 2], [1, 3, 4]]
    """
    widths = [(max(1, length),) for length in lengths]
    return _batches([np.asarray(lengths)], widths, tokens_per_batch, [seed, epoch])


def _batches(
    sort_keys: Sequence[np.ndarray], widths: Sequence[tuple[int, ...]], tokens_per_batch: int, seed: list[int]
) -> list[list[int]]:
    """Shuffle, sort by the last key first, cut into batches within the budget, and shuffle the batches."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(widths))
    order = shuffled[np.lexsort([key[shuffled] for key in sort_keys])]
    batches: list[list[int]] = []
    widest: tuple[int, ...] = ()
    for index in order.tolist():
        wider = tuple(map(max, widest or widths[index], widths[index]))
        if batches and (len(batches[-1]) + 1) * sum(wider) <= tokens_per_batch:
            batches[-1].append(index)
            widest = wider
        else:
            batches.append([index])
            widest = widths[index]
    return [batches[i] for i in rng.permutation(len(batches))]


def padding_share(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """Share of padding among all positions of padded batches of indices, from 0 (none) to below 1.

    Examples
    --------
    >>> padding_share([4, 2], [[0, 1]])
    0.25
    """
    n_positions = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    n_tokens = sum(lengths[i] for batch in batches for i in batch)
    return 1 - n_tokens / n_positions if n_positions else 0.0


def chunks(ids: Sequence[int], max_len: int) -> list[list[int]]:
    """Cut one text into windows in which every token but the first is a target exactly once.

    The inputs of a window are ``window[:-1]`` and its targets ``window[1:]``, so each window begins with the
    last token of the one before.

    Parameters
    ----------
    ids : sequence of int
        The whole text, with its special tokens.
    max_len : int
        Largest number of inputs in a window, at least 1: a window has 2 to ``max_len + 1`` ids.

    Examples
    --------
    >>> chunks([2, 10, 11, 12, 13, 3], max_len=2)
    [[2, 10, 11], [11, 12, 13], [13, 3]]
    """
    require(max_len >= 1, "max_len must be at least 1", max_len)
    return [list(ids[start : start + max_len + 1]) for start in range(0, len(ids) - 1, max_len)]


def batches_of_pairs(
    src_lengths: Sequence[int], tgt_lengths: Sequence[int], tokens_per_batch: int, *, seed: int, epoch: int
) -> list[list[int]]:
    """Group pairs of sequences whose lengths are similar on both sides; see `batches_by_length`.

    Pairs are sorted by target length and, within one target length, by source length (ascending and
    descending in turn, so neighbours stay similar). The positions of both sides count together; a pair that
    is longer than `tokens_per_batch` gets a batch to itself.

    Examples
    --------
    >>> batches = batches_of_pairs([3, 1, 3, 1], [2, 2, 2, 2], tokens_per_batch=10, seed=0, epoch=0)
    >>> sorted(sorted(batch) for batch in batches)
    [[0, 2], [1, 3]]
    """
    src, tgt = np.asarray(src_lengths), np.asarray(tgt_lengths)
    widths = list(zip(src_lengths, tgt_lengths, strict=True))
    return _batches([np.where(tgt % 2, -src, src), tgt], widths, tokens_per_batch, [seed, epoch])
