"""A few labelled texts out of many: how experiments with few labels draw them."""

from __future__ import annotations

import numpy as np

from tinytx.text.corpora import Split


def label_subset(split: Split, n_labels: int, seed: int) -> Split:
    """Some texts of a split, drawn by ``seed``, with as many of each class as can be.

    Examples
    --------
    >>> subset = label_subset(Split(tuple("abcdefgh"), (0, 1) * 4), 4, seed=0)
    >>> sorted(subset.labels)
    [0, 0, 1, 1]
    """
    labels = split.labels or ()
    if not 1 <= n_labels <= len(labels):
        raise ValueError(f"n_labels must be from 1 to {len(labels)}, the labels there are, got {n_labels}")
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(labels)).tolist()
    # The first text of each class, then the second of each, and so on.
    seen: dict[int, int] = {}
    rank = {}
    for index in shuffled:
        rank[index] = seen.get(labels[index], 0)
        seen[labels[index]] = rank[index] + 1
    chosen = sorted(sorted(shuffled, key=rank.__getitem__)[:n_labels])
    return Split(tuple(split.texts[i] for i in chosen), tuple(labels[i] for i in chosen))
