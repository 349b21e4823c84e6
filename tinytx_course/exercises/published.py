"""Exercises on published models: GPT-2's one matrix cut into three, and low-rank adaptation (LoRA)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tinytx_course.exercises.comparing import Reading, as_codes, floats
from tinytx_course.exercises.exercise import Exercise, chosen, generator, mistakes, normal
from tinytx_course.exercises.observation import Call, Failure, Opaque, kind_of, plain

Slips = frozenset[str]


def _thirds(weight: Tensor) -> tuple[Tensor, ...]:
    return weight.chunk(3, dim=1)  # each (D, D), in by out


def _split(weight: Tensor) -> Tensor:
    return torch.stack([part.T for part in _thirds(weight)])


def _split_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 12)
    for width in (1, 2, 3, 5):
        yield Call((normal(rng, width, 3 * width),))


SPLIT_C_ATTN = Exercise(
    name="split_c_attn",
    read=floats,
    solve=_split,
    calls=_split_calls,
    mistakes=mistakes(
        "split_c_attn",
        {
            "not-transposed": lambda weight: torch.stack(_thirds(weight)),
            "cut-by-rows": (
                lambda weight: weight.reshape(3, len(weight), len(weight)),
                lambda weight: weight.reshape(3, len(weight), len(weight)).transpose(1, 2),
            ),
            "every-third-column": (
                lambda weight: torch.stack([weight[:, i::3].T for i in range(3)]),
                lambda weight: torch.stack([weight[:, i::3] for i in range(3)]),
            ),
            "keys-first": lambda weight: _split(weight)[[1, 0, 2]],
            "values-first": lambda weight: _split(weight).flip(0),
            "heads-taken-for-maps": lambda weight: weight.T.reshape(len(weight), 3, len(weight)).transpose(
                0, 1
            ),
            "axis-of-maps-last": lambda weight: torch.stack([part.T for part in _thirds(weight)], dim=-1),
            "axis-of-maps-in-the-middle": lambda weight: weight.reshape(len(weight), 3, -1),
            "not-cut": lambda weight: weight.T,
            "queries-only": lambda weight: _thirds(weight)[0].T,
            "scaled": lambda weight: torch.cat(
                (_split(weight)[:1] / math.sqrt(len(weight)), _split(weight)[1:])
            ),
        },
    ),
)

_SCALES: dict[str, Callable[[float, Tensor, Tensor], float]] = {  # from alpha, A and B
    "scale-missing": lambda alpha, a, b: 1.0,
    "alpha-alone": lambda alpha, a, b: alpha,
    "alpha-missing": lambda alpha, a, b: 1 / len(a),
    "upside-down": lambda alpha, a, b: len(a) / alpha,
    "root-of-the-rank": lambda alpha, a, b: alpha / math.sqrt(len(a)),
    "divided-by-input-width": lambda alpha, a, b: alpha / a.shape[1],
    "divided-by-output-width": lambda alpha, a, b: alpha / len(b),
    "scaled-twice": lambda alpha, a, b: (alpha / len(a)) ** 2,
}


def _lora(
    x: Tensor, weight: Tensor, a: Tensor, b: Tensor, alpha: float, *, slips: Slips = frozenset()
) -> Any:
    """A linear layer with a low-rank update, with slips."""
    scale = chosen(_SCALES, slips, lambda alpha, a, b: alpha / len(a))(alpha, a, b)
    if "matrix-returned" in slips:
        return weight + scale * b @ a
    base = x @ (weight if "weight-not-transposed" in slips else weight.T)  # (B, T, D_out)
    if "a-and-b-exchanged" in slips:
        update = x @ b @ a
    else:
        low = (base if "reads-the-output" in slips else x) @ a.T  # (B, T, R)
        update = (low.relu() if "activation-between" in slips else low) @ b.T
    update = update * scale
    if "everything-scaled" in slips:
        return base * scale + update
    if "residual-added" in slips:
        return x + base + update
    results = {
        "frozen-part-missing": update,
        "update-missing": base,
        "subtracted": base - update,
        "multiplied": base * update,
    }
    return chosen(results, slips, base + update)


def _lora_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 41)

    def case(n: int, t: int, d_in: int, d_out: int, rank: int, alpha: float) -> Call:
        shapes = ((n, t, d_in), (d_out, d_in), (rank, d_in), (d_out, rank))
        return Call((*(normal(rng, *shape).round(decimals=1) for shape in shapes), alpha))

    def whole(*rows: Any) -> Tensor:
        return torch.tensor(rows, dtype=torch.float32, device="cpu")

    yield Call((whole([[1, 2]]), whole([1, 0], [3, 1]), whole([1, -1]), whole([2], [5]), 4.0))
    first = case(1, 2, 3, 3, 2, 3.0)
    first.arguments[3].zero_()  # B as it starts: nothing is added
    yield first
    yield case(1, 2, 3, 3, 2, 3.0)
    yield case(2, 3, 5, 2, 3, 0.5)
    yield case(3, 1, 2, 7, 4, 8.0)


LORA_FORWARD = Exercise(
    name="lora_forward",
    read=floats,
    solve=_lora,
    calls=_lora_calls,
    mistakes=mistakes(
        "lora_forward",
        with_slips=_lora,
        exclusive=(
            [*_SCALES, "everything-scaled"],
            ["matrix-returned", "frozen-part-missing", "update-missing", "subtracted", "multiplied"],
        ),
        together=("scale-missing", "weight-not-transposed"),
    ),
)

_PARTS = ("lora_a", "lora_b")
_FIRST: dict[str, tuple[str, str]] = {  # what A and B hold at first
    "both-zero": ("zeros", "zeros"),
    "b-random": ("random", "random"),
    "zero-and-random-exchanged": ("zeros", "random"),
    "a-constant": ("ones", "zeros"),
    "b-constant": ("random", "ones"),
}
_SHAPES: dict[str, Callable[[int, int, int], tuple[tuple[int, int], tuple[int, int]]]] = {
    "transposed": lambda d_in, d_out, rank: ((d_in, rank), (rank, d_out)),
    "widths-exchanged": lambda d_in, d_out, rank: ((rank, d_out), (d_in, rank)),
    "rank-ignored": lambda d_in, d_out, rank: ((1, d_in), (d_out, 1)),
    "as-large-as-the-layer": lambda d_in, d_out, rank: ((d_in, d_in), (d_out, d_in)),
}
_FROZEN: dict[str, Callable[[str], bool]] = {  # by the name of a parameter
    "nothing-frozen": lambda name: False,
    "bias-trained": lambda name: name == "weight",
    "everything-frozen": lambda name: True,
    "reversed": lambda name: name.startswith(_PARTS),
    "a-frozen": lambda name: not name.startswith("lora_b"),
    "b-frozen": lambda name: not name.startswith("lora_a"),
}


def _started(layer: nn.Linear, rank: int, *, slips: Slips = frozenset()) -> nn.Module:
    """A linear layer with the two new matrices of LoRA, with slips."""
    d_out, d_in = layer.weight.shape
    shapes = chosen(_SHAPES, slips, lambda d_in, d_out, rank: ((rank, d_in), (d_out, rank)))(
        d_in, d_out, rank
    )
    missing = chosen({"a-missing": "lora_a", "b-missing": "lora_b"}, slips, "")
    for name, shape, kind in zip(_PARTS, shapes, chosen(_FIRST, slips, ("random", "zeros")), strict=True):
        values = {"zeros": torch.zeros, "ones": torch.ones, "random": torch.randn}[kind](shape, device="cpu")
        if "layers-for-parameters" in slips:
            inner = nn.Linear(shape[1], shape[0], bias=False, device="cpu")
            inner.weight.data = values
            setattr(layer, name, inner)
        elif name != missing and "plain-tensors" not in slips:
            setattr(layer, name, nn.Parameter(values))
    frozen = chosen(_FROZEN, slips, lambda name: not name.startswith(_PARTS))
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(not frozen(name))
    return layer


def _adapter(value: Any) -> Reading | Failure:
    """Read a layer as its parameters: name, shape, whether it is trained, and what it holds at first."""
    value = plain(value) if isinstance(value, nn.Module) else value
    if not isinstance(value, Opaque) or not value.state:
        return Failure("wrong-type", f"The layer itself is due, got {kind_of(value)}: `return layer`.")
    rows = tuple(
        (name, str(tuple(held.shape)), "trained" if name in value.trained else "frozen", _content(name, held))
        for name, held in sorted(value.state.items())
        if isinstance(held, Tensor)
    )
    return Reading((as_codes(rows),), cells=rows)


def _content(name: str, held: Tensor) -> str:
    if not name.startswith(_PARTS):
        return f"sum {held.double().sum():.3f}"
    return "zeros" if not held.any() else "one value" if (held == held.flatten()[0]).all() else "random"


def _start_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 42)
    for d_in, d_out, rank, bias in ((2, 3, 1, True), (5, 3, 2, False), (3, 7, 2, True)):
        layer = nn.Linear(d_in, d_out, bias=bias, device="cpu", dtype=torch.float32)
        for parameter in layer.parameters():
            parameter.data = normal(rng, *parameter.shape)
        yield Call((layer, rank))


LORA_START = Exercise(
    name="lora_start",
    read=_adapter,
    solve=_started,
    calls=_start_calls,
    mistakes=mistakes(
        "lora_start",
        with_slips=_started,
        exclusive=(
            [*_FIRST, "a-missing", "b-missing", "plain-tensors"],
            [*_SHAPES, "plain-tensors"],
            [*_FROZEN],
        ),
        together=("nothing-frozen", "everything-frozen", "transposed", "both-zero"),
    ),
)
EXERCISES = (SPLIT_C_ATTN, LORA_START, LORA_FORWARD)
