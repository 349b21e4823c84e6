"""The exercise on turning logits into the distribution of the next token."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats
from tinytx_course.exercises.exercise import Exercise, Mistake, family, generator
from tinytx_course.exercises.observation import Call

_WRITE = "Use it: let it write"
Slips = frozenset[str]


def _kept_by_top_p(ordered: Tensor, top_p: float, slips: Slips) -> Tensor:
    """Which of the probabilities, sorted downwards, stay."""
    reached = ordered.cumsum(-1)
    before = reached - ordered
    if "crossing-dropped" in slips:
        return reached <= top_p
    if "crossing-dropped-but-first" in slips:
        return (reached <= top_p) | (before == 0)
    if "one-too-many" in slips:
        return (before < top_p) | (before - torch.cat((ordered[:1] * 0, ordered[:-1])) < top_p)
    if "threshold" in slips:
        return ordered >= top_p
    if "threshold-of-rest" in slips:
        return ordered >= 1 - top_p
    if "share-of-vocabulary" in slips:
        return torch.arange(len(ordered), device="cpu") < max(1, int(top_p * len(ordered)))
    if "tail-counted" in slips:
        return ordered.flip(0).cumsum(0).flip(0) <= top_p
    return before < top_p


def _kept_by_top_k(n: int, top_k: int, slips: Slips) -> Tensor:
    place = torch.arange(n, device="cpu")
    if "top-k-smallest" in slips:
        return place >= n - top_k
    if "top-k-one-too-many" in slips:
        return place < top_k + 1
    if "top-k-one-too-few" in slips:
        return place < top_k - 1
    return place < top_k


def _tempered(logits: Tensor, temperature: float, slips: Slips) -> Tensor:
    """Probabilities before anything is filtered."""
    if "temperature-ignored" in slips:
        return logits.softmax(-1)
    if "temperature-multiplied" in slips:
        return (logits * temperature).softmax(-1)
    if "temperature-on-probabilities" in slips:
        return (logits.softmax(-1) / temperature).softmax(-1)
    if "temperature-after-softmax" in slips:
        return logits.softmax(-1) / temperature
    if "softmax-twice" in slips:
        return (logits / temperature).softmax(-1).softmax(-1)
    return (logits / temperature).softmax(-1)


def _probs(
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    *,
    slips: Slips = frozenset(),
    scaled: bool = False,
) -> Tensor:
    """Distribution with slips; without any it is that of the package.

    `scaled`: what top-k leaves is scaled to 1 before top-p counts. Both readings pass.
    """
    logits = logits.double()
    probs = _tempered(logits, temperature, slips)
    ranked_by = logits.softmax(-1) if "top-p-before-temperature" in slips else probs
    order = ranked_by.argsort(descending=True)
    ordered = probs[order]
    keep = torch.ones_like(ordered, dtype=torch.bool)
    if top_k is not None and "top-k-ignored" not in slips:
        keep &= _kept_by_top_k(len(ordered), top_k, slips)
    if top_p is not None and "top-p-ignored" not in slips:
        counted = ranked_by[order]
        if scaled:
            counted = counted * keep / (counted * keep).sum()
        keep &= _kept_by_top_p(counted, top_p, slips)
    left = _normalised(ordered, keep, slips)
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


def _alike_where_empty(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, *, scaled: bool
) -> Tensor:
    """The crossing token dropped by a huge negative logit: equal shares if all are dropped."""
    probs = _probs(logits, temperature, top_k, top_p, slips=frozenset({"crossing-dropped"}), scaled=scaled)
    return probs.nan_to_num(1 / len(probs))


def _nothing_off(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    return _probs(logits, temperature, 1 if top_k is None else top_k, 1.0 if top_p is None else top_p)


_TOP_P = "top_p keeps the smallest set of most probable tokens whose probability reaches p"
_SLIPS = {
    "not-renormalised": ("What is left does not sum to 1: divide it by its sum.", _WRITE),
    "crossing-dropped": (
        f"{_TOP_P}; the token with which the sum crosses p belongs to it, and was dropped here.",
        _WRITE,
    ),
    "crossing-dropped-but-first": (
        f"{_TOP_P}; the token with which the sum crosses p belongs to it, and was dropped here.",
        _WRITE,
    ),
    "one-too-many": (f"{_TOP_P}; here the token after it was kept as well.", _WRITE),
    "threshold": (f"{_TOP_P}: it is the running sum that is compared with p, not each probability.", _WRITE),
    "threshold-of-rest": (
        f"{_TOP_P}: it is the running sum that is compared with p, not each probability.",
        _WRITE,
    ),
    "share-of-vocabulary": (f"{_TOP_P}: it is no share of the vocabulary.", _WRITE),
    "tail-counted": (f"{_TOP_P}; here the sum runs from the least probable one.", _WRITE),
    "temperature-multiplied": ("The logits are multiplied by the temperature: divide them by it.", _WRITE),
    "temperature-ignored": (
        "The temperature has no effect. (Dividing probabilities by it and scaling them to 1 again "
        "changes nothing: "
        "divide the logits, before the softmax.)",
        _WRITE,
    ),
    "temperature-on-probabilities": (
        "The temperature divides probabilities, which then go through a second softmax: divide the logits.",
        _WRITE,
    ),
    "temperature-after-softmax": ("The temperature divides probabilities: divide the logits by it.", _WRITE),
    "softmax-twice": ("There are two softmaxes: the second takes probabilities for logits.", _WRITE),
    "top-p-before-temperature": (
        "The set is chosen before the temperature comes in: temperature first, then top-k, then top-p.",
        _WRITE,
    ),
    "top-k-ignored": ("top_k has no effect.", _WRITE),
    "top-p-ignored": ("top_p has no effect.", _WRITE),
    "top-k-smallest": ("top_k keeps the smallest logits: keep the largest.", _WRITE),
    "top-k-one-too-many": ("top_k keeps k + 1 tokens.", _WRITE),
    "top-k-one-too-few": ("top_k keeps k - 1 tokens: the k-th largest stays too.", _WRITE),
    "left-sorted": (
        "The probabilities stand in sorted order: put each back at the place of its token (`scatter`).",
        _WRITE,
    ),
    "put-back-wrongly": (
        "The probabilities are put back at wrong places: `sorted[order]` orders once more. What "
        "stands at place i of "
        "the sorted ones belongs to token order[i]: `result[order] = sorted`, or `scatter`.",
        _WRITE,
    ),
    "softmax-for-renormalising": (
        "What is left goes through a softmax again, which gives weight to removed tokens: divide by the sum.",
        _WRITE,
    ),
    "argmax": ("All goes to the most probable token: return the whole distribution.", _WRITE),
}
_APART = (
    ["not-renormalised", "softmax-for-renormalising", "argmax"],
    [slug for slug in _SLIPS if slug.startswith(("crossing", "one-too", "threshold", "share", "tail"))]
    + ["top-p-ignored", "top-p-before-temperature"],
    [slug for slug in _SLIPS if slug.startswith(("temperature", "softmax-twice"))],
    [slug for slug in _SLIPS if slug.startswith("top-k")],
    ["left-sorted", "put-back-wrongly"],
)


def _spread_logits(rng: torch.Generator, n: int) -> Tensor:
    """Logits without near ties, in random order."""
    gaps = 0.35 + torch.rand(n, generator=rng, dtype=torch.float32, device="cpu")
    logits = gaps.cumsum(0)[torch.randperm(n, generator=rng, device="cpu")]
    return ((logits - logits.mean()) * 10).round() / 10


def _top_p_between(probs: Tensor, kept: int) -> float:
    """A p that is crossed by the kept-th token, well inside its share."""
    reached = probs.sort(descending=True).values.cumsum(0)
    low = float(reached[kept - 2]) if kept > 1 else 0.0
    return round(low + 0.6 * (float(reached[kept - 1]) - low), 3)


def _calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 8)
    n = 4
    for temperature, top_k, kept in (
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
        yield _case(rng, n, temperature, top_k, kept)
        n = min(n + 1, 7)
    yield _case(rng, 6, 2.5, None, 4)
    yield _both(rng, top_k=3, kept=2)
    yield _both(rng, top_k=2, kept=5)


def _case(rng: torch.Generator, n: int, temperature: float, top_k: int | None, kept: int | None) -> Call:
    logits = _spread_logits(rng, n)
    top_p = None if kept is None else _top_p_between((logits.double() / temperature).softmax(-1), kept)
    return Call((logits, temperature, top_k, top_p))


def _both(rng: torch.Generator, top_k: int, kept: int) -> Call:
    """Top-k and top-p such that it does not matter whether top-k is scaled to 1 before top-p counts."""
    temperature = 1.3
    while True:
        logits = _spread_logits(rng, 7)
        probs = (logits.double() / temperature).softmax(-1).sort(descending=True).values
        top_p = _top_p_between(probs, kept)
        scaled = probs[:top_k] / probs[:top_k].sum()
        before = scaled.cumsum(0) - scaled
        if int((before < top_p).sum()) == min(top_k, kept) and bool(((before - top_p).abs() > 0.02).all()):
            return Call((logits, temperature, top_k, top_p))


NEXT_TOKEN_PROBS = Exercise(
    name="next_token_probs",
    signature="next_token_probs(logits, temperature, top_k, top_p)",
    lesson=8,
    section=_WRITE,
    rule=(
        "a distribution of shape (V,): softmax of logits / temperature; then only the top_k "
        "largest; then only the "
        "smallest set of most probable tokens that reaches top_p, the one that crosses included; "
        "what is left sums "
        "to 1. None switches top_k or top_p off."
    ),
    read=floats,
    solve=_probs,
    calls=_calls,
    mistakes=(
        *family(_probs, _SLIPS, _APART, ("not-renormalised", "crossing-dropped", "temperature-multiplied")),
        *family(partial(_probs, scaled=True), _SLIPS, _APART),
        *(
            Mistake(
                "crossing-dropped", _SLIPS["crossing-dropped"][0], partial(_alike_where_empty, scaled=scaled)
            )
            for scaled in (False, True)
        ),
        Mistake(
            "logits-set-to-0",
            "Removed tokens get the logit 0, and exp(0) = 1: set them to -inf, or filter the probabilities.",
            _logits_set_to_zero,
        ),
        Mistake(
            "none-not-off",
            'None stands for "off": then nothing is filtered.',
            _nothing_off,
        ),
        Mistake(
            "logits-returned",
            "These are logits: probabilities are asked, which sum to 1.",
            lambda logits, temperature, top_k, top_p: logits / temperature,
        ),
        Mistake(
            "log-probabilities",
            "These are log-probabilities: return the probabilities themselves.",
            lambda logits, temperature, top_k, top_p: _probs(logits, temperature, top_k, top_p).log(),
        ),
    ),
)
EXERCISES = (NEXT_TOKEN_PROBS,)
