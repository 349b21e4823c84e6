"""Solutions for ablate_head and selectivity."""

from __future__ import annotations

import numpy as np
import torch

from tests.solutions.collection import of

# mypy: ignore-errors


right, wrong = of("ablate_head")


@right
def ablate_by_columns(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[:, :, head * width : (head + 1) * width] = 0
    return out


@wrong("nothing-returned")
def ablate_without_a_return(context, n_heads, head):
    width = context.shape[-1] // n_heads
    out = context.clone()
    out[..., head * width : (head + 1) * width] = 0


@right
def ablate_by_view(context, n_heads, head):
    b, t, d = context.shape
    out = context.clone().view(b, t, n_heads, d // n_heads)
    out[:, :, head, :] = 0.0
    return out.reshape(b, t, d)


@right
def ablate_by_mask(context, n_heads, head):
    number = torch.arange(context.shape[-1]) // (context.shape[-1] // n_heads)
    return context * (number != head)


@right
def ablate_by_chunks(context, n_heads, head):
    parts = list(context.chunk(n_heads, dim=-1))
    parts[head] = torch.zeros_like(parts[head])
    return torch.cat(parts, dim=-1)


@wrong("input-modified")
def ablate_in_place(context, n_heads, head):
    width = context.shape[-1] // n_heads
    context[..., head * width : (head + 1) * width] = 0
    return context


@wrong("input-modified")
def ablate_view_in_place(context, n_heads, head):
    heads = context.view(*context.shape[:2], n_heads, -1)
    heads[:, :, head].zero_()
    return heads.flatten(2)


@wrong("view-without-transpose")
def ablate_head_view_without_transpose(context, n_heads, head):
    B, T, D = context.shape
    o = context.clone().view(B, n_heads, T, D // n_heads)
    o[:, head] = 0
    return o.view(B, T, D)


@wrong("one-column-too-few")
def ablate_head_one_column_too_few(context, n_heads, head):
    w_ = context.shape[-1] // n_heads
    o = context.clone()
    o[..., head * w_ : (head + 1) * w_ - 1] = 0
    return o


@wrong("one-column-too-many")
def ablate_head_one_column_too_many(context, n_heads, head):
    w_ = context.shape[-1] // n_heads
    o = context.clone()
    o[..., head * w_ : (head + 1) * w_ + 1] = 0
    return o


right, wrong = of("selectivity")


@right
def selectivity_in_a_loop(fit, hidden, labels, words, is_train, draws):
    scores = []
    for y in (labels, draws[words]):
        probe = fit(hidden[is_train], y[is_train])
        scores.append((probe(hidden[~is_train]) == y[~is_train]).float().mean().item())
    return scores[0] - scores[1]


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


@wrong("changes-between-calls")
def selectivity_permuted(fit, hidden, labels, words, is_train, draws):
    scores = []
    for y in (labels, labels[torch.randperm(len(labels))]):
        probe = fit(hidden[is_train], y[is_train])
        scores.append((probe(hidden[~is_train]) == y[~is_train]).float().mean().item())
    return scores[0] - scores[1]


wrong("wrong-type", selectivity_in_a_loop, {"scores[0] - scores[1]": "scores"})
