"""Exercises on next-token prediction: targets, loss, perplexity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx_course.exercises.comparing import integers, number, pair
from tinytx_course.exercises.exercise import Exercise, generator, mistakes, normal
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]


def _ids(rng: torch.Generator, *shape: int) -> Tensor:
    n = math.prod(shape)
    return torch.randperm(n + 3, generator=rng, device="cpu")[:n].view(shape) + 2


def _shift_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 4)
    for shape in ((1, 2), (1, 3), (2, 3), (3, 3), (2, 5), (3, 7)):
        yield Call((_ids(rng, *shape),))


def _filled_up(fill: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    return lambda ids: (ids, torch.cat((ids[:, 1:], torch.full_like(ids[:, :1], fill)), 1))


def _filled_in_front(fill: int) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    return lambda ids: (torch.cat((torch.full_like(ids[:, :1], fill), ids[:, :-1]), 1), ids)


SHIFT_TARGETS = Exercise(
    name="shift_targets",
    read=pair(integers, integers, "inputs, targets"),
    solve=lambda ids: (ids[:, :-1], ids[:, 1:]),
    calls=_shift_calls,
    mistakes=mistakes(
        "shift_targets",
        {
            "exchanged": lambda ids: (ids[:, 1:], ids[:, :-1]),
            "not-shifted": (
                lambda ids: (ids, ids),
                lambda ids: (ids[:, :-1], ids[:, :-1]),
                lambda ids: (ids[:, 1:], ids[:, 1:]),
            ),
            "rolled": lambda ids: (ids, ids.roll(-1, 1)),
            "rolled-backwards": lambda ids: (ids, ids.roll(1, 1)),
            "rolled-over-rows": lambda ids: (ids, ids.roll(-1)),
            "shifted-by-two": lambda ids: (ids[:, :-2], ids[:, 2:]),
            "inputs-not-cut": lambda ids: (ids, ids[:, 1:]),
            "targets-not-cut": lambda ids: (ids[:, :-1], ids),
            "batch-shifted": lambda ids: (ids[:-1], ids[1:]),
            "only-last-target": (
                lambda ids: (ids[:, :-1], ids[:, -1]),
                lambda ids: (ids[:, :-1], ids[:, -1:]),
            ),
            "one-too-short": lambda ids: (ids[:, :-2], ids[:, 1:-1]),
            "filled-up": tuple(_filled_up(fill) for fill in (0, -100, -1, 1)),
            "filled-in-front": tuple(_filled_in_front(fill) for fill in (0, 1)),
        },
    ),
)


def _mean_surprise(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=pad_id)


def _loss(logits: Tensor, targets: Tensor, pad_id: int, *, slips: Slips = frozenset()) -> Tensor:
    """Loss with slips; without any it is the mean surprise."""
    logits = logits.double()
    if "shifted-again" in slips:
        logits, targets = logits[:, :-1], targets[:, 1:]
    if "view-for-transpose" in slips:
        logits = logits.reshape(len(logits), logits.shape[2], -1).transpose(1, 2)
    if "softmax-twice" in slips:
        logits = logits.softmax(-1)
    if "padding-out-of-softmax" in slips:
        logits = logits.index_fill(-1, torch.tensor([pad_id], device="cpu"), -1e9)
    log_probs = logits.log_softmax(1 if "softmax-over-positions" in slips else -1)
    if "log-softmax-forgotten" in slips:
        log_probs = logits
    if "log-forgotten" in slips:
        log_probs = logits.softmax(-1)
    picked = log_probs.gather(-1, targets[..., None])[..., 0]  # (B, T)
    real = targets != (0 if "pad-id-0-assumed" in slips else pad_id)
    if "only-padding" in slips:
        real = ~real
    if "padding-counted" in slips:
        real = torch.ones_like(real)
    surprise = picked.exp() if "probability-for-log" in slips else -picked
    surprise = surprise * real
    if "sign-forgotten" in slips:
        surprise = -surprise
    mean = surprise.sum() / _divisor(real, slips)
    if "mean-of-means" in slips:
        mean = (surprise.sum(1) / real.sum(1)).mean()
    if "log-of-mean-probability" in slips:
        mean = -((picked.exp() * real).sum() / real.sum()).log()
    mean = mean / math.log(2) if "bits" in slips else mean / math.log(10) if "base-10" in slips else mean
    return mean.exp() if "perplexity-returned" in slips else mean


def _divisor(real: Tensor, slips: Slips) -> Tensor | int:
    if "not-divided" in slips:
        return 1
    if "divided-by-all" in slips:
        return real.numel()
    if "divided-by-rows" in slips:
        return len(real)
    return real.sum()


_LOSS_APART = (
    ["padding-counted", "divided-by-all", "only-padding", "pad-id-0-assumed"],
    ["divided-by-all", "not-divided", "divided-by-rows", "mean-of-means", "log-of-mean-probability"],
    ["bits", "base-10"],
    ["softmax-twice", "log-softmax-forgotten", "log-forgotten", "softmax-over-positions"],
    ["probability-for-log", "log-of-mean-probability", "sign-forgotten"],
)


def _loss_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 5)
    for lengths, width, vocab_size, pad_id in (
        ((1,), 2, 2, 1),
        ((2, 1), 2, 3, 2),
        ((3, 1), 3, 5, 4),
        ((4, 2, 3), 5, 7, 2),
        ((5, 1, 2), 5, 6, 0),
    ):
        real = torch.tensor([i for i in range(vocab_size) if i != pad_id], device="cpu")
        draw = torch.randint(len(real), (len(lengths), width), generator=rng, device="cpu")
        targets = real[draw]
        targets[0, 0] = real[0]
        for row, length in enumerate(lengths):
            targets[row, length:] = pad_id
        yield Call((2 * normal(rng, len(lengths), width, vocab_size), targets, pad_id))


LANGUAGE_MODEL_LOSS = Exercise(
    name="language_model_loss",
    read=number,
    solve=_mean_surprise,
    calls=_loss_calls,
    mistakes=mistakes(
        "language_model_loss",
        with_slips=_loss,
        exclusive=_LOSS_APART,
        together=("padding-counted", "softmax-twice", "bits"),
    ),
)


def _perplexity_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 6)
    a, b = (0.5 + torch.rand(2, generator=rng, dtype=torch.float64, device="cpu")).tolist()
    for nats, n_tokens in ((1.5, 1), (3.0, 2), (round(3 * a, 2), 3), (round(7 * b, 2), 5), (11.25, 4)):
        yield Call((nats, n_tokens))


PERPLEXITY = Exercise(
    name="perplexity",
    read=number,
    solve=lambda nats, n: math.exp(nats / n),
    calls=_perplexity_calls,
    mistakes=mistakes(
        "perplexity",
        {
            "not-divided": lambda nats, n: math.exp(nats),
            "base-2": lambda nats, n: 2 ** (nats / n),
            "negative-exponent": lambda nats, n: math.exp(-nats / n),
            "exp-forgotten": lambda nats, n: nats / n,
            "divided-after-exp": lambda nats, n: math.exp(nats) / n,
            "exchanged": lambda nats, n: math.exp(n / nats),
            "log-for-exp": lambda nats, n: math.log(nats / n),
            "base-10": lambda nats, n: 10 ** (nats / n),
            "root-of-total": lambda nats, n: nats ** (1 / n),
            "whole-division": lambda nats, n: math.exp(nats // n),
            "one-token-too-many": lambda nats, n: math.exp(nats / (n + 1)),
            "multiplied": lambda nats, n: math.exp(nats * n),
            "bits-mixed-up": lambda nats, n: math.exp(nats / n / math.log(2)),
            "one-subtracted": lambda nats, n: math.expm1(nats / n),
            "rounded": (
                lambda nats, n: round(math.exp(nats / n)),
                lambda nats, n: round(math.exp(nats / n), 1),
                lambda nats, n: round(math.exp(nats / n), 2),
                lambda nats, n: int(math.exp(nats / n)),
            ),
        },
    ),
)
EXERCISES = (SHIFT_TARGETS, LANGUAGE_MODEL_LOSS, PERPLEXITY)
