"""Solutions for repeated_texts, grouped_split and gain_interval."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


def words_of(text):
    return re.findall(r"[^\W_]+", text.lower())


right, wrong = of("repeated_texts")


@right
def repeated_regex(train, test):
    seen = {" ".join(words_of(text)) for text in train}
    return [i for i, text in enumerate(test) if " ".join(words_of(text)) in seen]


@right
def repeated_alnum(train, test):
    def key(text):
        return "".join(sign if sign.isalnum() else " " for sign in text.casefold()).split()

    seen = [key(text) for text in train]
    found = []
    for i in range(len(test)):
        if key(test[i]) in seen:
            found.append(i)
    return found


@right
def repeated_tuples(train, test):
    seen = set(map(tuple, map(words_of, train)))
    places = np.flatnonzero([tuple(words_of(text)) in seen for text in test])
    return places.tolist()


@right
def repeated_substituted(train, test):
    keys = [re.sub(r"[\W_]+", " ", text).strip().lower() for text in train]
    return [i for i, text in enumerate(test) if re.sub(r"[\W_]+", " ", text).strip().lower() in keys]


@right
def repeated_double_loop(train, test):
    found = []
    for i, one in enumerate(test):
        for other in train:
            if words_of(one) == words_of(other):
                found.append(i)
                break
    return found


wrong("wrong-type", repeated_regex, {"[i for i, text in enumerate(test)": "[text for text in test"})
wrong("wrong-type", repeated_regex, {"[i for": "len([i for", "in seen]": "in seen])"})


right, wrong = of("grouped_split")


@right
def split_counter(groups, n_test):
    sizes, test, n = Counter(groups), [], 0
    for group, size in sizes.items():
        if n >= n_test:
            break
        test.append(group)
        n += size
    return [i for i in range(len(groups)) if groups[i] in test]


@right
def split_text_by_text(groups, n_test):
    test = []
    for group in groups:
        if group not in test and sum(one in test for one in groups) < n_test:
            test.append(group)
    return [i for i, group in enumerate(groups) if group in test]


@right
def split_numpy(groups, n_test):
    names, first, number, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    before = np.cumsum(sizes[order]) - sizes[order]
    test = order[before < n_test]
    return np.flatnonzero(np.isin(number, test)).tolist()


@right
def split_lists_of_indices(groups, n_test):
    where = {}
    for i, group in enumerate(groups):
        where.setdefault(group, []).append(i)
    test = []
    while where and len(test) < n_test:
        test += where.pop(next(iter(where)))
    return sorted(test)


@wrong("group-taken-again")
def split_takes_again(groups, n_test):
    test = []
    for film in groups:
        if len(test) >= n_test:
            break
        test.extend(i for i, group in enumerate(groups) if group == film)
    return sorted(test)


wrong("wrong-type", lambda groups, n_test: sorted({groups[i] for i in split_counter(groups, n_test)}))
wrong("wrong-type", lambda groups, n_test: dict.fromkeys(split_counter(groups, n_test), True))


@wrong("input-modified")
def split_sorts_in_place(groups, n_test):
    found = split_counter(groups, n_test)
    groups.sort()
    return found


wrong("nothing-returned", split_numpy, {"return np": "print(np", ".tolist()": ".tolist())"})


right, wrong = of("gain_interval")


@right
def gain_by_hand(ours, theirs, t):
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    mean = sum(gains) / len(gains)
    s = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1))
    half = t * s / math.sqrt(len(gains))
    return mean - half, mean + half


@right
def gain_numpy(ours, theirs, t):
    gains = np.array(ours) - np.array(theirs)
    half = t * gains.std(ddof=1) / np.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half


@right
def gain_torch(ours, theirs, t):
    gains = torch.tensor(ours, dtype=torch.float64) - torch.tensor(theirs, dtype=torch.float64)
    half = t * gains.std() / len(gains) ** 0.5
    return [gains.mean() - half, gains.mean() + half]


@right
def gain_covariance(ours, theirs, t):
    n = len(ours)
    shared = statistics.covariance(ours, theirs)
    variance = statistics.variance(ours) + statistics.variance(theirs) - 2 * shared
    middle, half = statistics.fmean(ours) - statistics.fmean(theirs), t * math.sqrt(variance / n)
    return middle - half, middle + half


@wrong("divided-by-n+reversed")
def gain_two_slips(ours, theirs, t):
    gains = np.array(theirs) - np.array(ours)
    half = t * gains.std() / np.sqrt(len(gains))
    return gains.mean() - half, gains.mean() + half
