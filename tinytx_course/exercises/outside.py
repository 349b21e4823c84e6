"""Exercises on what others measured and trained: gains over folds, weights cut from one matrix."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tinytx_course.exercises.comparing import floats, number, pair
from tinytx_course.exercises.exercise import Exercise, Mistake, family, generator, normal
from tinytx_course.exercises.observation import Call


def _gain(
    ours: Sequence[float], theirs: Sequence[float], t: float, *, slips: frozenset[str] = frozenset()
) -> tuple[float, float]:
    """The interval of a mean paired difference, with slips."""
    if "sorted-first" in slips:
        ours, theirs = sorted(ours), sorted(theirs)
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    gains = [-gain for gain in gains] if "reversed" in slips else gains
    gains = list(ours) if "without-theirs" in slips else gains
    n, mean = len(gains), statistics.fmean(gains)
    spread = statistics.pstdev(gains) if "divided-by-n" in slips else statistics.stdev(gains)
    if "not-paired" in slips:
        spread = math.sqrt(statistics.variance(ours) + statistics.variance(theirs))
    spread = spread**2 if "variance-for-deviation" in slips else spread
    t = 1.96 if "normal-for-t" in slips else 1.0 if "without-t" in slips else t
    if "spread-of-folds" in slips:
        half = t * spread
    elif "divided-by-n-again" in slips:
        half = t * spread / n
    else:
        half = t * spread / math.sqrt(n)
    if "extremes" in slips:
        return min(gains), max(gains)
    if "mean-and-half" in slips:
        return mean, half
    ends = mean - half, mean + half
    return (ends[1], ends[0]) if "high-first" in slips else ends


_GAIN_SLIPS = {
    "not-paired": (
        "The spreads of the two are added, as if they had nothing to do with each other. Take the "
        "differences fold by fold first: what makes a fold easy for both drops out.",
        "",
    ),
    "spread-of-folds": (
        "This is how far single folds scatter. The *mean* of n folds scatters less: divide by √n.",
        "",
    ),
    "divided-by-n": ("The spread divides by n: with a mean from the same numbers it is n - 1.", ""),
    "divided-by-n-again": ("The spread is divided by n: the mean of n numbers scatters by 1/√n.", ""),
    "normal-for-t": (
        "1.96 is for a spread that is known. Here it is estimated from few folds, so `t` is given.",
        "",
    ),
    "without-t": ("This is one standard error to each side: `t` of them are asked.", ""),
    "variance-for-deviation": ("The variance is used where its root, the deviation, belongs.", ""),
    "reversed": ("The differences are theirs minus ours: the gain of ours is asked.", ""),
    "sorted-first": ("Both lists are sorted, which tears the pairs apart.", ""),
    "without-theirs": ("This is the interval of `ours` alone: that of the differences is asked.", ""),
    "extremes": (
        "These are the smallest and the largest difference: an interval for the mean is asked.",
        "",
    ),
    "mean-and-half": ("These are the mean and half of the width: return the two ends.", ""),
    "high-first": ("The ends are exchanged: the lower one comes first.", ""),
}


def _gain_calls(seed: int) -> Iterator[Call]:
    yield Call(([70.0, 74.0], [68.0, 70.0], 12.7))
    yield Call(([71.0, 76.5, 66.0], [69.5, 72.0, 66.5], 4.3))
    drawn = random.Random(seed)
    for n, t in ((4, 3.18), (6, 2.57), (11, 2.23)):
        easy = [drawn.gauss(72, 4) for _ in range(n)]
        ours, theirs = ([round(one + drawn.gauss(gain, 1.5), 1) for one in easy] for gain in (2, 0))
        yield Call((ours, theirs, t))


GAIN_INTERVAL = Exercise(
    name="gain_interval",
    signature="gain_interval(ours, theirs, t)",
    lesson=15,
    section="The same folds for both",
    rule=(
        "two numbers, (low, high): mean minus and plus t times s/√n, where mean and s (with n - 1) are those "
        "of the differences ours minus theirs, fold by fold."
    ),
    read=pair(number, number, "low, high"),
    solve=_gain,
    calls=_gain_calls,
    mistakes=family(
        _gain,
        _GAIN_SLIPS,
        (["mean-and-half", "extremes", "high-first"],),
        together=("reversed", "high-first"),
    ),
)


def _thirds(weight: Tensor) -> tuple[Tensor, ...]:
    return weight.chunk(3, dim=1)  # each (D, D), in by out


def _split(weight: Tensor) -> Tensor:
    return torch.stack([part.T for part in _thirds(weight)])


def _split_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 12)
    for width in (1, 2, 3, 5):
        yield Call((normal(rng, width, 3 * width),))


_SECTION_SPLIT = "Where the names and the axes differ"
SPLIT_C_ATTN = Exercise(
    name="split_c_attn",
    signature="split_c_attn(weight)",
    lesson=15,
    section=_SECTION_SPLIT,
    rule=(
        "a tensor of shape (3, D, D): the weights of q_proj, k_proj and v_proj as `nn.Linear` holds them, "
        "(out, in), cut from GPT-2's `c_attn.weight` of shape (D, 3·D), which is (in, out)."
    ),
    read=floats,
    solve=_split,
    calls=_split_calls,
    mistakes=(
        Mistake(
            "not-transposed",
            "The thirds are right, but each is (in, out) still: `nn.Linear` holds (out, in), so transpose.",
            lambda weight: torch.stack(_thirds(weight)),
        ),
        Mistake(
            "cut-by-rows",
            "`reshape` reads row by row, so each third holds bits of all three: cut along the *columns*, "
            "dim=1.",
            (
                lambda weight: weight.reshape(3, len(weight), len(weight)),
                lambda weight: weight.reshape(3, len(weight), len(weight)).transpose(1, 2),
            ),
        ),
        Mistake(
            "every-third-column",
            "Every third column is taken: the D columns of the queries come first, then those of the keys.",
            (
                lambda weight: torch.stack([weight[:, i::3].T for i in range(3)]),
                lambda weight: torch.stack([weight[:, i::3] for i in range(3)]),
            ),
        ),
        Mistake(
            "keys-first",
            "Keys and queries are exchanged: the order in `c_attn` is queries, keys, values.",
            lambda weight: _split(weight)[[1, 0, 2]],
        ),
        Mistake(
            "values-first",
            "The order is turned round: in `c_attn` it is queries, keys, values.",
            lambda weight: _split(weight).flip(0),
        ),
        Mistake(
            "heads-taken-for-maps",
            "The axes are cut as if row by row a query, a key and a value came: (D, 3, D) of the transposed.",
            lambda weight: weight.T.reshape(len(weight), 3, len(weight)).transpose(0, 1),
        ),
        Mistake(
            "axis-of-maps-last",
            "The three maps stand on the last axis: the first is asked, (3, D, D).",
            lambda weight: torch.stack([part.T for part in _thirds(weight)], dim=-1),
        ),
        Mistake(
            "axis-of-maps-in-the-middle",
            "The three maps stand on the second axis: the first is asked, (3, D, D).",
            lambda weight: weight.reshape(len(weight), 3, -1),
        ),
        Mistake(
            "not-cut",
            "The matrix is transposed but still in one piece, (3·D, D): cut it into three of (D, D).",
            lambda weight: weight.T,
        ),
        Mistake(
            "queries-only",
            "These are the queries alone: those of keys and values follow, (3, D, D).",
            lambda weight: _thirds(weight)[0].T,
        ),
        Mistake(
            "scaled",
            "The queries are divided by √D here: the scale belongs to attention, not to the weights.",
            lambda weight: torch.stack([_split(weight)[0] / math.sqrt(len(weight)), *_split(weight)[1:]]),
        ),
    ),
)
EXERCISES = (GAIN_INTERVAL, SPLIT_C_ATTN)
