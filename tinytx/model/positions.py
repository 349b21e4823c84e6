"""Order told by vectors that are added to the embeddings: sinusoidal and learned positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def sinusoidal_positions(
    max_len: int, d_model: int, base: float = 10_000.0, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Write each position as d_model / 2 clock hands that turn at different speeds.

    ``PE[pos, 2i] = sin(pos / base^(2i / d_model))`` and ``PE[pos, 2i + 1] = cos(pos / base^(2i / d_model))``
    for i from 0 to d_model / 2 - 1.

    Parameters
    ----------
    max_len : int
        How many positions, at least 1.
    d_model : int
        D, even.
    base : float
        Positive; the slowest hand turns about ``base`` times slower than the fastest.
    dtype : torch.dtype, optional
        Of the result; torch's default where not given.

    Returns
    -------
    Tensor of shape (max_len, D)
        Every row has length ``sqrt(D / 2)``.

    Raises
    ------
    ValueError
        If `d_model` is odd, or `max_len`, `d_model` or `base` is not positive.

    Notes
    -----
    Angles are computed in float64 whatever the dtype of the result: in float32 the angle of position 500 is
    off by some 1e-5, a hundred times the rounding of the sine itself.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5.

    Examples
    --------
    With d_model = 4 and base = 100, the second hand turns ten times slower than the first:

    >>> sinusoidal_positions(2, 4, base=100)[1]          # sin 1, cos 1, sin 0.1, cos 0.1
    tensor([0.8415, 0.5403, 0.0998, 0.9950])
    """
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, got {max_len}")
    speeds = clock_speeds(d_model, base)
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), speeds)  # (max_len, D/2)
    hands = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (max_len, D/2, 2)
    return hands.flatten(1).to(dtype or torch.get_default_dtype())  # (max_len, D), sine and cosine in turn


def shift_matrix(k: float, d_model: int, base: float = 10_000.0) -> Tensor:
    """Return the linear map that moves every position k steps on: ``PE(pos + k) = R(k) @ PE(pos)``.

    R(k) is block-diagonal. Hand i, of speed ``w = base^(-2i / d_model)``, is turned by the angle k w::

        [ sin((pos + k) w) ]   [  cos(k w)  sin(k w) ]   [ sin(pos w) ]
        [ cos((pos + k) w) ] = [ -sin(k w)  cos(k w) ] @ [ cos(pos w) ]

    which is the addition theorem for sine and cosine. The map does not depend on pos.

    Parameters
    ----------
    k : float
        How many positions to move; negative moves back.
    d_model : int
        D, even.
    base : float
        As in `sinusoidal_positions`.

    Returns
    -------
    Tensor of shape (D, D), float64
        A rotation: ``R(k).T = R(-k)`` is its inverse, and ``R(j) @ R(k) = R(j + k)``.

    Raises
    ------
    ValueError
        If `d_model` is odd, or `d_model` or `base` is not positive.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5, which states the fact without the matrix.

    Examples
    --------
    A quarter turn brings (sin 0, cos 0) = (0, 1) to (sin 90°, cos 90°) = (1, 0):

    >>> import math
    >>> quarter = shift_matrix(math.pi / 2, d_model=2)
    >>> (quarter @ torch.tensor([0.0, 1.0], dtype=torch.float64)).round().tolist()
    [1.0, 0.0]
    """
    angles = k * clock_speeds(d_model, base)  # (D/2,)
    sin, cos = angles.sin(), angles.cos()
    rotations = torch.stack((cos, sin, -sin, cos), dim=-1).unflatten(-1, (2, 2))  # (D/2, 2, 2)
    return torch.block_diag(*rotations)  # (D, D)


def clock_speeds(width: int, base: float, *, name: str = "d_model") -> Tensor:
    """Angle per position of each clock hand, (width/2,) in float64: ``base^(-2i / width)``.

    Raises
    ------
    ValueError
        If the width, called `name`, is odd or not positive, or `base` is not positive.
    """
    if width < 1 or width % 2:
        raise ValueError(f"{name} must be even and positive, got {name}={width}")
    if base <= 0:
        raise ValueError(f"base must be positive, got base={base}")
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width  # 2i / width
    return base**-exponents


class SinusoidalPositions(nn.Module):
    """Add fixed sinusoidal positions to a sequence of embeddings.

    Parameters
    ----------
    max_len : int
        Longest sequence, in tokens.
    d_model : int
        D, even.
    base : float
        As in `sinusoidal_positions`.

    Notes
    -----
    The table moves with the module (device, dtype), but nothing in it is learned: it is no parameter, and it
    is not saved, since it can be computed again.
    """

    table: Tensor

    def __init__(self, max_len: int, d_model: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(max_len, d_model, base), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add row ``start + t`` of the table to token t; x and the result have shape (B, T, D)."""
        return x + self.table[start : start + x.shape[1]]


class LearnedPositions(nn.Module):
    """Add learned positions to a sequence of embeddings: one free vector for each place.

    Parameters
    ----------
    max_len : int
        Longest sequence, in tokens. A place that training never reaches keeps its random vector.
    d_model : int
        D.
    offset : int
        Rows before that of the first place, which are never read.

    References
    ----------
    .. [1] Gehring et al., "Convolutional Sequence to Sequence Learning", arXiv 1705.03122, section 3.1.
    .. [2] Vaswani et al., arXiv 1706.03762, table 3, row E, which found them equal to sinusoids.
    """

    def __init__(self, max_len: int, d_model: int, offset: int = 0) -> None:
        super().__init__()
        self.offset = offset
        # Vectors of length about 1: a fraction of a scaled embedding, so that tokens speak louder at first.
        self.table = nn.Parameter(torch.randn(max_len + offset, d_model) * d_model**-0.5)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add row ``offset + start + t`` of the table to token t; x and the result have shape (B, T, D)."""
        first = self.offset + start
        return x + self.table[first : first + x.shape[1]]
