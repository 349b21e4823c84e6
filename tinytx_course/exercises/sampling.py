"""Exercises on sampling: the distribution of the next token, and the loop that writes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats, ids
from tinytx_course.exercises.exercise import Exercise, generator, mixed
from tinytx_course.exercises.observation import Call


def _spread_logits(rng: torch.Generator, n: int) -> Tensor:
    """Logits without near ties, in random order."""
    gaps = 0.35 + torch.rand(n, generator=rng, dtype=torch.float32, device="cpu")
    logits = gaps.cumsum(0)[torch.randperm(n, generator=rng, device="cpu")]
    return ((logits - logits.mean()) * 10).round() / 10


def _top_p_between(probs: Tensor, n_left: int) -> float:
    """A p that is crossed by token number `n_left`, well inside its share."""
    reached = probs.sort(descending=True).values.cumsum(0)
    low = float(reached[n_left - 2]) if n_left > 1 else 0.0
    return round(low + 0.6 * (float(reached[n_left - 1]) - low), 3)


def _calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 8)
    n = 4
    for temperature, top_k, n_left in (
        (1.0, None, None),
        (2.0, None, None),
        (0.5, None, None),
        (1.0, 2, None),
        (1.0, 1, None),
        (1.0, None, 2),
        (1.0, None, 1),
        (1.5, None, 3),
        (0.7, 3, None),
    ):
        yield _case(rng, n, temperature, top_k, n_left)
        n = min(n + 1, 7)
    yield _case(rng, 6, 2.5, None, 4)
    yield Call((torch.tensor([0.2, 0.4, 0.1, 0.3], device="cpu").log(), 1.0, 2, 0.55))  # not 4/7 before top-p
    yield _case(rng, 7, 1.3, 3, 2)
    yield _case(rng, 7, 1.3, 2, 5)


def _case(rng: torch.Generator, n: int, temperature: float, top_k: int | None, n_left: int | None) -> Call:
    logits = _spread_logits(rng, n)
    top_p = None if n_left is None else _top_p_between((logits.double() / temperature).softmax(-1), n_left)
    return Call((logits, temperature, top_k, top_p))


class _Model:
    """A language model whose logits at each position follow from a hash of the ids up to it."""

    def __init__(self, seed: int, max_len: int, vocab_size: int = 5) -> None:
        self._seed, self._max_len, self._vocab_size = seed, max_len, vocab_size

    def __call__(self, token_ids: Tensor) -> Tensor:
        if not isinstance(token_ids, Tensor) or token_ids.dim() != 2 or token_ids.is_floating_point():
            raise TypeError("the model reads a tensor of ids of shape (1, T)")
        if not 1 <= token_ids.shape[1] <= self._max_len:
            got = token_ids.shape[1]
            raise ValueError(f"a row must hold 1 to max_len={self._max_len} ids, got {got}")
        rows = []
        for row in token_ids.tolist():
            state, logits = self._seed, []
            for token in row:
                state = mixed(state + token + 1)
                hashes = (mixed(state + 1000 + i) for i in range(self._vocab_size))
                logits.append([4.0 * h / 2**64 - 2.0 for h in hashes])
            rows.append(logits)
        return torch.tensor(rows, device=token_ids.device)  # (B, T, V)


class _Draw:
    """Draws the first id at which the running sum of the probabilities passes a fixed share."""

    def __init__(self, share: float, vocab_size: int = 5) -> None:
        self._share, self._vocab_size = share, vocab_size

    def __call__(self, probs: Tensor) -> int:
        if probs.shape != (self._vocab_size,):
            got = tuple(probs.shape)
            raise ValueError(f"draw takes probabilities of shape ({self._vocab_size},), got shape {got}")
        passed = (probs.double().cumsum(0) > self._share).nonzero()
        return int(passed[0]) if len(passed) else self._vocab_size - 1


def _generate_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 20)
    shares = (0.55, 0.3, 0.75, 0.45, 0.2, 0.62)
    sizes = ((1, 1, 4), (1, 3, 4), (2, 2, 4), (2, 4, 3), (5, 3, 3), (3, 6, 4))
    for i, (n_given, n_new, max_len) in enumerate(sizes):
        given = torch.randint(5, (n_given,), generator=rng, device="cpu").tolist()
        words = (
            "The model gives logits over 5 ids for each position; draw takes the first id at which the "
            f"running sum of the probabilities passes {shares[i]}."
        )
        yield Call((_Model(7919 * seed + i, max_len), given, n_new, max_len, _Draw(shares[i])), words)


EXERCISES = (
    Exercise(name="next_token_probs", read=floats, calls=_calls),
    Exercise(name="generate", read=ids, calls=_generate_calls),
)
