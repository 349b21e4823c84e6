"""Solutions for selectivity."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("selectivity")


@right
def selectivity_in_a_loop(fit, hidden, labels, words, is_train, draws):
    scores = []
    for y in (labels, draws[words]):
        probe = fit(hidden[is_train], y[is_train])
        scores.append((probe(hidden[~is_train]) == y[~is_train]).float().mean().item())
    return scores[0] - scores[1]


right(selectivity_in_a_loop, {"fit(hidden[is_train], y": "fit(x=hidden[is_train], y=y", "probe(": "probe(x="})
wrong(
    "types-renumbered", selectivity_in_a_loop, {"draws[words]": "draws[words.unique(return_inverse=True)[1]]"}
)


@right
def selectivity_by_index(fit, hidden, labels, words, is_train, draws):
    train, test = is_train.nonzero()[:, 0], (~is_train).nonzero()[:, 0]

    def accuracy(y):
        guesses = fit(hidden.index_select(0, train), y[train])(hidden[test])
        return guesses.eq(y[test]).double().mean()

    return accuracy(labels) - accuracy(draws.gather(0, words))


@right
def selectivity_by_type(fit, hidden, labels, words, is_train, draws):
    control = torch.empty_like(labels)
    for word in words.unique():
        control[words == word] = draws[word]
    hits = [fit(hidden[is_train], y[is_train])(hidden)[~is_train] == y[~is_train] for y in (labels, control)]
    return (hits[0].sum() - hits[1].sum()) / (~is_train).sum()


@right
def selectivity_numpy(fit, hidden, labels, words, is_train, draws):
    control = torch.from_numpy(draws.numpy()[words.numpy()])
    right, random = (fit(hidden[is_train], y[is_train])(hidden).eq(y).numpy() for y in (labels, control))
    return np.mean(right[~is_train.numpy()]) - np.mean(random[~is_train.numpy()])


wrong("changes-between-calls", selectivity_in_a_loop, {"draws[words]": "labels[torch.randperm(len(labels))]"})
wrong("wrong-type", selectivity_in_a_loop, {"scores[0] - scores[1]": "scores"})
