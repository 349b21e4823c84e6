"""Exercises on next-token prediction: targets, loss, the loss of an answer, perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import Reading, integers, number, pair
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call, Observation


def _ids(rng: torch.Generator, *shape: int) -> Tensor:
    n = math.prod(shape)
    return torch.randperm(n + 3, generator=rng, device="cpu")[:n].view(shape) + 2


def large_logits(*others: object) -> Call:
    """A call whose first prediction gives the right one of two tokens a logit of 0 and the other one 120."""
    return Call((torch.tensor([[[0.0, 120.0], [0.0, 0.0]]], device="cpu"), *others))


def on_large_logits(seen: Observation) -> str:
    """A remark for a loss that passed and is infinite there: it is 120."""
    value = number(seen.value) if seen.failure is None else seen.failure
    if not isinstance(value, Reading) or value.tensors[0].isfinite().all():
        return ""
    return "with logits of 0 and 120 the loss is 120, and yours is infinite: `log_softmax` is for this."


def _shift_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 4)
    for shape in ((1, 2), (1, 3), (2, 3), (3, 3), (2, 5), (3, 7)):
        yield Call((_ids(rng, *shape),))


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


def _answer_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 42)
    for lengths, prompt_lens, width, vocab_size, pad_id in (
        ((3,), (2,), 3, 2, 0),
        ((3,), (1,), 4, 3, 2),
        ((5, 4), (3, 2), 5, 3, 0),
        ((5, 3), (1, 2), 7, 5, 4),
        ((6, 7, 3), (4, 2, 1), 8, 5, 2),
        ((8, 5, 11), (3, 4, 7), 11, 7, 0),
    ):
        ids = 1 + torch.randint(vocab_size - 1, (len(lengths), width), generator=rng, device="cpu")
        ids = ids - 1 * (ids <= pad_id) if pad_id else ids  # every id but that of padding
        for row, length in enumerate(lengths):
            ids[row, length:] = pad_id
        logits = (2 * normal(rng, len(lengths), width, vocab_size)).round(decimals=1)
        yield Call((logits, ids, torch.tensor(prompt_lens, device="cpu"), pad_id))


def _perplexity_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 6)
    a, b = (0.5 + torch.rand(2, generator=rng, dtype=torch.float64, device="cpu")).tolist()
    for nats, n_tokens in ((1.5, 1), (3.0, 2), (round(3 * a, 2), 3), (round(7 * b, 2), 5), (11.25, 4)):
        yield Call((nats, n_tokens))


EXERCISES = (
    Exercise(name="shift_targets", read=pair(integers, integers, "inputs, targets"), calls=_shift_calls),
    Exercise(
        name="answer_loss",
        read=number,
        calls=_answer_calls,
        probe=large_logits(torch.tensor([[1, 0]]), torch.tensor([1]), 2),
        hint=on_large_logits,
    ),
    Exercise(
        name="language_model_loss",
        read=number,
        calls=_loss_calls,
        probe=large_logits(torch.tensor([[0, 2]]), 2),
        hint=on_large_logits,
    ),
    Exercise(name="perplexity", read=number, calls=_perplexity_calls),
)
