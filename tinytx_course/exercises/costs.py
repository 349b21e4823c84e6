"""Exercises on what a layer costs: its operations, and the longest chain of those that wait."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tinytx_course.exercises.comparing import count
from tinytx_course.exercises.exercise import Exercise, chosen, mistakes
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]
Waiting = list[tuple[int, ...]]


def _attention_flops(seq_len: int, d_model: int, n_heads: int, *, slips: Slips = frozenset()) -> int:
    n, d = (d_model, seq_len) if "sizes-exchanged" in slips else (seq_len, d_model)
    n_projections = {"projections-forgotten": 0, "one-projection": 1, "output-projection-forgotten": 3}
    n_pairs = {"pairs-forgotten": 0, "causal-pairs": n * (n + 1) // 2}
    products = chosen({"one-product-of-pairs": 1}, slips, 2)  # scores, weighted sums
    projections = chosen(n_projections, slips, 4) * n * d * d
    pairs = products * chosen(n_pairs, slips, n * n) * d
    if "times-heads" in slips:
        pairs *= n_heads
    if "one-head" in slips:
        pairs = pairs // n_heads
    return (projections + pairs) * chosen({"one-operation": 1, "training": 6}, slips, 2)


def _projections_times_heads(n: int, d: int, n_heads: int) -> int:
    return 8 * n * d * d * n_heads + 4 * n * n * d


ATTENTION_FLOPS = Exercise(
    name="attention_flops",
    read=count,
    solve=_attention_flops,
    calls=lambda seed: (
        Call(sizes) for sizes in ((2, 3, 1), (3, 5, 1), (5, 6, 3), (50, 24, 2), (7 + seed, 10, 5))
    ),
    mistakes=mistakes(
        "attention_flops",
        {
            "times-heads": (
                lambda n, d, h: _attention_flops(n, d, h, slips=frozenset({"times-heads"})),
                lambda n, d, h: h * _attention_flops(n, d, h),
                _projections_times_heads,
            ),
            "order-only": (
                lambda n, d, h: n * n * d,
                lambda n, d, h: n * n * d + n * d * d,
                lambda n, d, h: n * d * d,
            ),
            "per-token": (
                lambda n, d, h: _attention_flops(n, d, h) // n,
                lambda n, d, h: 8 * d * d + 4 * n * d,
                lambda n, d, h: 8 * d * d + 4 * n * n * d,
            ),
            "biases-added": lambda n, d, h: _attention_flops(n, d, h) + 4 * n * d,
            "gru": lambda n, d, h: 12 * n * d * d,
            "parameters": (lambda n, d, h: 4 * d * d, lambda n, d, h: 4 * (d * d + d)),
        },
        with_slips=_attention_flops,
        exclusive=[
            {"projections-forgotten", "one-projection", "output-projection-forgotten"},
            {"pairs-forgotten", "one-product-of-pairs", "causal-pairs", "one-head"},
            {"one-operation", "training"},
        ],
        together={"one-operation", "output-projection-forgotten"},
    ),
)


def _depths(waits_for: Waiting, choose: Callable[[list[int]], int] = max, start: int = 1) -> list[int]:
    """The length of a chain that ends at each operation."""
    depths: list[int] = []
    for before in waits_for:
        depths.append(1 + choose([depths[i] for i in before]) if before else start)
    return depths


def _longest_chain(waits_for: Waiting) -> int:
    return max(_depths(waits_for), default=0)


def _widest(waits_for: Waiting) -> int:
    depths = _depths(waits_for)
    return max((depths.count(depth) for depth in depths), default=0)


def _ancestors(waits_for: Waiting) -> int:
    """Operations before the last one, and itself."""
    reached: list[set[int]] = []
    for i, before in enumerate(waits_for):
        reached.append({i}.union(*(reached[j] for j in before)))
    return len(reached[-1]) if reached else 0


def _most_waits(waits_for: Waiting) -> int:
    return max(map(len, waits_for), default=0)


def _graphs(seed: int) -> Iterator[Call]:
    rng = random.Random(seed)
    yield Call(([()],))
    yield Call(([(), (0,)],))
    yield Call(([(), (0,), (0,)],))
    yield Call(([(), (), (0,), (2, 1)],))
    yield Call(([(), (), (1,), (0, 2), (0,)],))
    yield Call(([(), (0,), (1,), (), (3, 2), (2, 3), (0,)],))
    yield Call(([(), (), ()],))
    yield Call(([()] + [(i,) for i in range(6)],))
    n = 12
    drawn = [tuple(rng.sample(range(i), rng.randint(0, min(i, 3)))) for i in range(n)]
    yield Call(([*drawn, (3, 5), (3,)],))
    yield Call(([(), ()] + [(i, i + 1) for i in range(60)],))  # as many chains as the 60th Fibonacci number
    yield Call(([],))


LONGEST_CHAIN = Exercise(
    name="longest_chain",
    read=count,
    solve=_longest_chain,
    calls=_graphs,
    mistakes=mistakes(
        "longest_chain",
        {
            "links-counted": (
                lambda waits_for: max(_longest_chain(waits_for) - 1, 0),
                lambda waits_for: _longest_chain(waits_for) - 1,
                lambda waits_for: max(_depths(waits_for, start=0)),
            ),
            "all-operations": len,
            "ends-at-the-last": (
                lambda waits_for: _depths(waits_for)[-1],
                lambda waits_for: _depths(waits_for)[-1] if waits_for else 0,
            ),
            "first-only": (
                lambda waits_for: max(_depths(waits_for, lambda depths: depths[0]), default=0),
                lambda waits_for: max(_depths(waits_for, lambda depths: depths[0])),
            ),
            "last-only": (
                lambda waits_for: max(_depths(waits_for, lambda depths: depths[-1]), default=0),
                lambda waits_for: max(_depths(waits_for, lambda depths: depths[-1])),
            ),
            "sums-branches": (
                lambda waits_for: max(_depths(waits_for, sum), default=0),
                lambda waits_for: max(_depths(waits_for, sum)),
            ),
            "shortest": (
                lambda waits_for: max(_depths(waits_for, min), default=0),
                lambda waits_for: max(_depths(waits_for, min)),
            ),
            "widest": _widest,
            "ancestors": _ancestors,
            "most-waits": (
                _most_waits,
                lambda waits_for: 1 + _most_waits(waits_for),
                lambda waits_for: max(map(len, waits_for)),
            ),
            "all-waits": lambda waits_for: sum(map(len, waits_for)),
            "no-operations": lambda waits_for: max(_depths(waits_for)),
            "one-for-no-operations": lambda waits_for: max(_longest_chain(waits_for), 1),
        },
    ),
)
EXERCISES = (ATTENTION_FLOPS, LONGEST_CHAIN)
