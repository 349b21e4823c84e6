"""Lesson 05, the block: the size of a signal on its way up through a stack, and of a gradient back down.

Shape letters: B rows of a batch, T tokens, D model width.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Signals:
    """`size_of` and `variety_of` at each level of a stack: of the input, then of what each block returns.

    `gradient` is the size of the gradient that arrives there, if one of size about 1 is sent in at the top.
    """

    size: tuple[float, ...]
    variety: tuple[float, ...]
    gradient: tuple[float, ...]


def size_of(x: Tensor) -> float:
    """Return the root of the mean square of all numbers in x, of any shape.

    Examples
    --------
    >>> size_of(torch.tensor([[3.0, -3.0], [3.0, 3.0]]))
    3.0
    """
    return x.detach().square().mean().sqrt().item()


def variety_of(x: Tensor) -> float:
    """Say how much of the sequences x, of shape (..., T, D), tells their tokens apart.

    The size of the differences from the mean token, ``x - mean(x)``, as a share of the size of x: from 0,
    where all T tokens of a sequence are equal, to 1, where their mean is zero.

    References
    ----------
    .. [1] Dong, Cordonnier and Loukas, arXiv 2103.03404, section 2, for the distance from equal tokens
       (in another norm).

    Examples
    --------
    >>> variety_of(torch.tensor([[1.0], [1.0], [1.0]]))
    0.0
    >>> variety_of(torch.tensor([[2.0], [-2.0]]))
    1.0
    """
    whole = size_of(x)
    return size_of(x - x.mean(dim=-2, keepdim=True)) / whole if whole else 0.0


def signals(blocks: Iterable[nn.Module], x: Tensor) -> Signals:
    """Send x up through the blocks and a random gradient down again, and measure both at every level.

    The gradient is drawn from a normal distribution with variance 1, always the same.

    Parameters
    ----------
    blocks : iterable of Module
        Each maps (B, T, D) to (B, T, D); the first is the lowest.
    x : Tensor of shape (B, T, D)
        What comes in; best in float64, since tokens may become alike to many digits.
    """
    levels = _climb(blocks, x)
    gradients = torch.autograd.grad(levels[-1], levels, _random_like(levels[-1]))
    return Signals(
        size=tuple(map(size_of, levels)),
        variety=tuple(variety_of(level.detach()) for level in levels),
        gradient=tuple(map(size_of, gradients)),
    )


def weight_gradients(blocks: Iterable[nn.Module], x: Tensor, name: str) -> tuple[float, ...]:
    """Return the size of the gradient of one parameter in each block, sent from the top as in `signals`.

    The name is that inside a block, such as ``attn.q_proj.weight``; the lowest block comes first.
    """
    blocks = list(blocks)
    weights = [block.get_parameter(name) for block in blocks]
    top = _climb(blocks, x)[-1]
    return tuple(map(size_of, torch.autograd.grad(top, weights, _random_like(top))))


def _climb(blocks: Iterable[nn.Module], x: Tensor) -> list[Tensor]:
    levels = [x.detach().requires_grad_()]
    for block in blocks:
        levels.append(block(levels[-1]))
    return levels


def _random_like(top: Tensor) -> Tensor:
    drawn = torch.randn(top.shape, generator=torch.Generator().manual_seed(0), dtype=top.dtype)
    return drawn.to(top.device)
