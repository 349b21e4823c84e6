"""Exercises on sampling: the distribution of the next token, and the loop that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats, ids
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, mixed
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]
_TEMPERATURE: dict[str, Callable[[Tensor, float], Tensor]] = {  # from logits to probabilities
    "temperature-ignored": lambda logits, t: logits.softmax(-1),
    "temperature-multiplied": lambda logits, t: (logits * t).softmax(-1),
    "temperature-on-probabilities": lambda logits, t: (logits.softmax(-1) / t).softmax(-1),
    "temperature-after-softmax": lambda logits, t: logits.softmax(-1) / t,
    "softmax-twice": lambda logits, t: (logits / t).softmax(-1).softmax(-1),
}
_TOP_K: dict[str, Callable[[Tensor, int], Tensor]] = {  # from ranks to which tokens stay
    "top-k-ignored": lambda rank, k: rank >= 0,
    "top-k-smallest": lambda rank, k: rank >= len(rank) - k,
    "top-k-one-too-many": lambda rank, k: rank < k + 1,
    "top-k-one-too-few": lambda rank, k: rank < k - 1,
}
# From the probabilities, sorted downwards, and the sum of those before each, to which tokens stay.
_TOP_P: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "top-p-ignored": lambda probs, before, p: probs >= 0,
    "crossing-dropped": lambda probs, before, p: before + probs <= p,
    "crossing-dropped-but-first": lambda probs, before, p: (before + probs <= p) | (before == 0),
    "one-too-many": lambda probs, before, p: _ranks(probs) <= (before < p).sum(),
    "threshold": lambda probs, before, p: probs >= p,
    "threshold-of-rest": lambda probs, before, p: probs >= 1 - p,
    "share-of-vocabulary": lambda probs, before, p: _ranks(probs) < max(1, int(p * len(probs))),
    "tail-counted": lambda probs, before, p: probs.flip(0).cumsum(0).flip(0) <= p,
}


def _ranks(ordered: Tensor) -> Tensor:
    return torch.arange(len(ordered), device="cpu")


def _probs(
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    *,
    slips: Slips = frozenset(),
    scaled: bool = False,
    filled: bool = False,
) -> Tensor:
    """Distribution with slips; without any it is that of the package.

    `scaled`: what top-k leaves is scaled to 1 before top-p counts; both readings pass. `filled`: tokens are
    dropped by a huge negative logit, which gives equal shares if all are dropped.
    """
    logits = logits.double()
    probs = chosen(_TEMPERATURE, slips, lambda logits, t: (logits / t).softmax(-1))(logits, temperature)
    ranked_by = logits.softmax(-1) if "top-p-before-temperature" in slips else probs
    order = ranked_by.argsort(descending=True)
    ordered = probs[order]
    keep = torch.ones_like(ordered, dtype=torch.bool)
    if top_k is not None:
        keep &= chosen(_TOP_K, slips, lambda rank, k: rank < k)(_ranks(ordered), top_k)
    if top_p is not None:
        counted = ranked_by[order]
        if scaled:
            counted = counted * keep / (counted * keep).sum()
        before = counted.cumsum(-1) - counted
        keep &= chosen(_TOP_P, slips, lambda probs, before, p: before < p)(counted, before, top_p)
    left = _normalised(ordered, keep, slips)
    left = left.nan_to_num(1 / len(left)) if filled else left
    if "argmax" in slips:
        left = (left == left.max()).double()
    if "left-sorted" in slips:
        return left
    if "put-back-wrongly" in slips:
        return left[order]
    back = torch.empty_like(left)
    back[order] = left
    return back


def _normalised(ordered: Tensor, keep: Tensor, slips: Slips) -> Tensor:
    left = ordered * keep
    if "not-renormalised" in slips:
        return left
    if "softmax-for-renormalising" in slips:
        return left.softmax(-1)
    return left / left.sum()


def _logits_set_to_zero(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    keep = _probs(logits, temperature, top_k, top_p) > 0
    return (logits.double() / temperature * keep).softmax(-1)


def _nothing_off(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    return _probs(logits, temperature, 1 if top_k is None else top_k, 1.0 if top_p is None else top_p)


_APART = (
    ["not-renormalised", "softmax-for-renormalising", "argmax"],
    [*_TOP_P, "top-p-before-temperature"],
    [*_TEMPERATURE],
    [*_TOP_K],
    ["left-sorted", "put-back-wrongly"],
)


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
    yield _both(rng, top_k=3, n_left=2)
    yield _both(rng, top_k=2, n_left=5)


def _case(rng: torch.Generator, n: int, temperature: float, top_k: int | None, n_left: int | None) -> Call:
    logits = _spread_logits(rng, n)
    top_p = None if n_left is None else _top_p_between((logits.double() / temperature).softmax(-1), n_left)
    return Call((logits, temperature, top_k, top_p))


def _both(rng: torch.Generator, top_k: int, n_left: int) -> Call:
    """Top-k and top-p such that it does not matter whether top-k is scaled to 1 before top-p counts."""
    temperature = 1.3
    while True:
        logits = _spread_logits(rng, 7)
        probs = (logits.double() / temperature).softmax(-1).sort(descending=True).values
        top_p = _top_p_between(probs, n_left)
        scaled = probs[:top_k] / probs[:top_k].sum()
        before = scaled.cumsum(0) - scaled
        if int((before < top_p).sum()) == min(top_k, n_left) and bool(((before - top_p).abs() > 0.02).all()):
            return Call((logits, temperature, top_k, top_p))


NEXT_TOKEN_PROBS = Exercise(
    name="next_token_probs",
    read=floats,
    solve=_probs,
    calls=_calls,
    mistakes=mistakes(
        "next_token_probs",
        {
            "logits-set-to-0": _logits_set_to_zero,
            "none-not-off": _nothing_off,
            "logits-returned": lambda logits, temperature, top_k, top_p: logits / temperature,
            "log-probabilities": lambda *arguments: _probs(*arguments).log(),
        },
        tuple(
            partial(_probs, scaled=scaled, filled=filled)
            for scaled, filled in product((False, True), repeat=2)
        ),
        _APART,
        together=("not-renormalised", "crossing-dropped", "temperature-multiplied"),
    ),
)


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
        if probs.numel() != self._vocab_size:
            raise ValueError(f"draw takes {self._vocab_size} probabilities, got shape {tuple(probs.shape)}")
        passed = (probs.reshape(-1).double().cumsum(0) > self._share).nonzero()
        return int(passed[0]) if len(passed) else self._vocab_size - 1


def _generate(
    model: Callable[[Tensor], Tensor],
    token_ids: list[int],
    n_new: int,
    max_len: int,
    draw: Callable[[Tensor], int],
    *,
    slips: Slips = frozenset(),
) -> list[int]:
    """The sampling loop with slips."""
    found = list(token_ids)
    total = len(found) + n_new
    ends = {
        "one-too-many": total + 1,
        "one-too-few": total - 1,
        "n-new-is-total": n_new,
        "stops-at-max-len": min(total, max_len),
    }
    while len(found) < chosen(ends, slips, total):
        window = {
            "context-not-cut": found,
            "beginning-read": found[:max_len],
            "last-id-only": found[-1:],
            "new-ids-not-read": token_ids[-max_len:],
            "context-one-short": found[-(max_len - 1) :],
        }
        logits = model(torch.tensor([chosen(window, slips, found[-max_len:])], device="cpu"))  # (1, T, V)
        at = {"first-position": logits[0, 0], "mean-of-positions": logits[0].mean(0)}
        last = chosen(at, slips, logits[0, -1])  # (V,)
        weights = {
            "logits-drawn": last,
            "log-probabilities-drawn": last.log_softmax(-1),
            "softmax-over-positions": logits.softmax(1)[0, -1],
            "softmax-twice": last.softmax(-1).softmax(-1),
        }
        probs = chosen(weights, slips, last.softmax(-1))
        found.append(int(probs.argmax()) if "argmax" in slips else draw(probs))
    if "prompt-dropped" in slips:
        return found[len(token_ids) :]
    return found[-max_len:] if "beginning-lost" in slips else found


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


GENERATE = Exercise(
    name="generate",
    read=ids,
    solve=_generate,
    calls=_generate_calls,
    mistakes=mistakes(
        "generate",
        with_slips=_generate,
        exclusive=(
            ["one-too-many", "one-too-few", "n-new-is-total", "stops-at-max-len"],
            ["context-not-cut", "beginning-read", "last-id-only", "new-ids-not-read", "context-one-short"],
            ["first-position", "mean-of-positions", "softmax-over-positions"],
            ["logits-drawn", "log-probabilities-drawn", "softmax-over-positions", "softmax-twice", "argmax"],
            ["prompt-dropped", "beginning-lost"],
        ),
        together=("prompt-dropped", "argmax"),
    ),
)
EXERCISES = (NEXT_TOKEN_PROBS, GENERATE)
