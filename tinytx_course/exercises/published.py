"""Exercises on published models: one matrix cut into three, and low-rank adaptation (LoRA)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tinytx_course.exercises.comparing import Reading, as_codes, floats
from tinytx_course.exercises.exercise import Exercise, generator, normal
from tinytx_course.exercises.observation import Call, Failure, Opaque, kind_of, plain


def _split_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 12)
    for n_heads, head_dim in ((1, 1), (2, 1), (2, 3), (3, 2)):
        width = n_heads * head_dim
        yield Call((normal(rng, 3 * width, width), n_heads))


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
    if name in ("weight", "bias"):  # the layer's own; others may be random, whatever they are called
        return f"sum {held.double().sum():.3f}"
    if not held.any():
        return "zeros"
    if (held == held.flatten()[0]).all():
        return "one value"
    steps = held.double().flatten().diff()
    if torch.allclose(steps, steps[:1]) or held.dim() == 2 and torch.equal(held, torch.eye(*held.shape)):
        return "a fixed pattern"
    alone = min(held.shape, default=0) > 1 and torch.linalg.matrix_rank(held.double()) == 1
    return "rank 1" if alone else "random"


def _start_calls(seed: int) -> Iterator[Call]:
    rng = generator(seed, 42)
    # So wide that signs drawn at random are not all equal by chance.
    for d_in, d_out, rank, bias in ((29, 31, 1, True), (37, 29, 2, False), (31, 41, 2, True)):
        layer = nn.Linear(d_in, d_out, bias=bias, device="cpu", dtype=torch.float32)
        for parameter in layer.parameters():
            parameter.data = normal(rng, *parameter.shape)
        yield Call((layer, rank))


EXERCISES = (
    Exercise(name="split_by_head", read=floats, calls=_split_calls),
    Exercise(name="lora_start", read=_adapter, calls=_start_calls),
)
