"""Position encodings: sinusoidal, learned, rotary and ALiBi."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tinytx.settings import check_whole, require


def sinusoidal_positions(
    max_len: int, d_model: int, base: float = 10_000.0, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Encode each position by d_model / 2 pairs of sine and cosine, each of another frequency.

    ``PE[pos, 2i] = sin(pos / base^(2i / d_model))`` and ``PE[pos, 2i + 1] = cos(pos / base^(2i / d_model))``
    for i from 0 to d_model / 2 - 1.

    Parameters
    ----------
    max_len : int
        How many positions, at least 1.
    d_model : int
        D, even.
    base : float
        Positive; the lowest frequency is ``base^(1 - 2 / d_model)`` times lower than the highest.
    dtype : torch.dtype, optional
        Of the result; torch's default where not given.

    Returns
    -------
    Tensor of shape (max_len, D)
        Every row has length ``sqrt(D / 2)``.

    Raises
    ------
    ValueError
        If `max_len` is below 1, `d_model` is odd, or `base` is not positive.

    Notes
    -----
    Angles are computed in float64 whatever the dtype of the result: in float32 the angle of position 500 has
    an error of some 1e-5, a hundred times the rounding of the sine itself.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5.

    Examples
    --------
    With d_model = 4 and base = 100, the second frequency is ten times lower than the first:

    >>> sinusoidal_positions(2, 4, base=100)[1]          # sin 1, cos 1, sin 0.1, cos 0.1
    tensor([0.8415, 0.5403, 0.0998, 0.9950])
    """
    check_whole("max_len", max_len, 1)
    cos, sin = _cosines_and_sines(torch.arange(max_len), d_model, base, "d_model")  # (max_len, D/2) each
    return torch.stack((sin, cos), dim=-1).flatten(1).to(dtype or torch.get_default_dtype())  # (max_len, D)


def shift_matrix(k: float, d_model: int, base: float = 10_000.0) -> Tensor:
    """The matrix that shifts every sinusoidal position by k: ``PE(pos + k) = R(k) @ PE(pos)``.

    R(k) is block-diagonal. Pair i, of frequency ``w = base^(-2i / d_model)``, is rotated by the angle k w::

        [ sin((pos + k) w) ]   [  cos(k w)  sin(k w) ]   [ sin(pos w) ]
        [ cos((pos + k) w) ] = [ -sin(k w)  cos(k w) ] @ [ cos(pos w) ]

    which is the addition theorem for sine and cosine. The matrix does not depend on pos.

    Parameters
    ----------
    k : float
        How many positions to shift; negative shifts back.
    d_model, base
        As in `sinusoidal_positions`.

    Returns
    -------
    Tensor of shape (D, D), float64
        A rotation: ``R(k).T = R(-k)`` is its inverse, and ``R(j) @ R(k) = R(j + k)``.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5, which states the fact without the matrix.

    Examples
    --------
    A quarter turn takes (sin 0, cos 0) = (0, 1) to (sin 90°, cos 90°) = (1, 0):

    >>> import math
    >>> quarter = shift_matrix(math.pi / 2, d_model=2)
    >>> (quarter @ torch.tensor([0.0, 1.0], dtype=torch.float64)).round().tolist()
    [1.0, 0.0]
    """
    cos, sin = _cosines_and_sines(torch.as_tensor(k, dtype=torch.float64), d_model, base, "d_model")
    rotations = torch.stack((cos, sin, -sin, cos), dim=-1).view(-1, 2, 2)  # (D/2, 2, 2)
    shift: Tensor = torch.block_diag(*rotations)  # type: ignore[no-untyped-call]  # (D, D)
    return shift


def _cosines_and_sines(
    positions: Tensor, width: int, base: float, name: str = "head_dim"
) -> tuple[Tensor, Tensor]:
    """Cosines and sines of all angles ``pos base^(-2i / width)``, (..., width/2) each, in float64."""
    require(width >= 1 and width % 2 == 0, f"{name} must be even and positive", f"{name}={width}")
    require(base > 0, "base must be positive", f"base={base}")
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width  # 2i / width
    angles = positions.double()[..., None] * base**-exponents  # (..., width/2)
    return angles.cos(), angles.sin()


def _rows(table: Tensor, start: int, n: int, offset: int = 0) -> Tensor:
    """Rows of a table for n positions, of which the first is `start`; a slice alone would give fewer."""
    max_len, end = len(table) - offset, start + n
    require(end <= max_len, f"a row must hold at most max_len={max_len} tokens", end)
    return table[offset + start : offset + end]


class SinusoidalPositions(nn.Module):
    """Add `sinusoidal_positions` to a sequence of embeddings; nothing is learned, and nothing is saved."""

    table: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(max_len, d_model), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add row ``start + t`` of the table to token t; x and the result have shape (B, T, D)."""
        return x + _rows(self.table, start, x.shape[1])


class LearnedPositions(nn.Module):
    """Add learned positions to a sequence of embeddings: one free vector for each of `max_len` positions.

    A position that training never reaches stays at its random start. `offset` is the `position_offset` of
    the configuration.

    References
    ----------
    .. [1] Gehring et al., "Convolutional Sequence to Sequence Learning", arXiv 1705.03122, section 3.1.
    .. [2] Vaswani et al., arXiv 1706.03762, table 3, row E, which found them equal to sinusoids.
    """

    def __init__(self, max_len: int, d_model: int, offset: int = 0) -> None:
        super().__init__()
        self.offset = offset
        # Vectors of length about 1, a fraction of a scaled embedding: tokens dominate at first.
        self.table = nn.Parameter(torch.randn(max_len + offset, d_model) * d_model**-0.5)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add row ``offset + start + t`` of the table to token t; x and the result have shape (B, T, D)."""
        return x + _rows(self.table, start, x.shape[1], self.offset)


def rotate(x: Tensor, positions: Tensor | None = None, base: float = 10_000.0) -> Tensor:
    """Rotate each vector by its position: ``R(pos) x`` (RoPE).

    R(pos) is `shift_matrix`: it rotates the pair of numbers (2i, 2i + 1) by the angle ``pos base^(-2i / K)``.
    As ``R(t) q · R(s) k = q · R(s - t) k``, the product of a rotated query and a rotated key depends on
    their positions through s - t alone.

    Parameters
    ----------
    x : Tensor of shape (..., T, K)
        Queries or keys, K even.
    positions : Tensor of shape (T,), optional
        0, 1, ... T - 1 where not given.
    base : float
        As in `sinusoidal_positions`.

    Returns
    -------
    Tensor of shape (..., T, K)
        Every vector keeps its length.

    Raises
    ------
    TypeError, ValueError
        If x holds no real numbers, K is odd, `base` is not positive, or a shape does not fit.

    Notes
    -----
    Angles are computed in float64. The paper rotates the other way, by ``R(-pos)``: the same up to the order
    of the two numbers of a pair. Some models (Llama) pair number i with number i + K/2 instead.

    References
    ----------
    .. [1] Su et al., "RoFormer", arXiv 2104.09864, section 3.2, equations 14 and 15.

    Examples
    --------
    Position 0 is encoded as (0, 1); rotated by position 2 it is what `sinusoidal_positions` gives for 2:

    >>> rotate(torch.tensor([[0.0, 1.0]]), torch.tensor([2]))      # sin 2, cos 2
    tensor([[ 0.9093, -0.4161]])
    """
    if not x.is_floating_point():
        raise TypeError(f"x must hold real numbers, got {x.dtype}")
    require(x.dim() >= 2, "x must have at least 2 axes", f"shape {tuple(x.shape)}")
    if positions is None:
        positions = torch.arange(x.shape[-2], device=x.device)
    shape = tuple(positions.shape)
    require(shape == (x.shape[-2],), f"positions must have shape ({x.shape[-2]},)", shape)
    return _rotate(x, *_cosines_and_sines(positions, x.shape[-1], base))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs of x, (..., T, K), by angles of which (T, K/2) cosines and sines are given."""
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, K/2) each
    rotated = torch.stack((cos * first + sin * second, cos * second - sin * first), dim=-1)
    return rotated.flatten(-2).to(x.dtype)  # (..., T, K)


class RotaryPositions(nn.Module):
    """Rotate queries and keys by their positions before attention compares them, as `rotate` does.

    Values are not rotated: what a token passes on does not depend on its position. Nothing is learned, and
    nothing is saved.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, max_len: int, head_dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        check_whole("max_len", max_len, 1)
        tables = _cosines_and_sines(torch.arange(max_len), head_dim, base)
        for name, table in zip(("cos", "sin"), tables, strict=True):
            self.register_buffer(name, table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor, None]:
        """Rotate queries and keys, (..., T, K) each, from position `start` on.

        Returns these and None: nothing is added to their scores.
        """
        cos, sin = (_rows(table, start, q.shape[-2]) for table in (self.cos, self.sin))  # (T, K/2) each
        return _rotate(q, cos, sin), _rotate(k, cos, sin), None


def alibi_slopes(n_heads: int) -> Tensor:
    """By how much each head lowers a score per token of distance.

    ``2^(-8h / H)`` for h = 1 ... H where H is a power of two. Otherwise the slopes of the next smaller power
    of two, and then every second slope of twice as many heads, until there are H. Shape (H,).

    References
    ----------
    .. [1] Press et al., "Train Short, Test Long", arXiv 2108.12409, section 3; for other numbers of heads
       the authors' code.

    Examples
    --------
    >>> alibi_slopes(4)
    tensor([0.2500, 0.0625, 0.0156, 0.0039])
    >>> alibi_slopes(6)[4:]     # the first and the third of eight heads
    tensor([0.5000, 0.1250])
    """
    check_whole("n_heads", n_heads, 1)
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above H
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-4 * h / power) for h in range(1, 2 * power, 2)]
    return torch.tensor(slopes[:n_heads])


def alibi_bias(n_heads: int, seq_len: int) -> Tensor:
    """Biases that lower each score by the distance between query and key: ``-slope_h |t - s|``.

    Parameters
    ----------
    n_heads, seq_len : int
        H, and T, both at least 1.

    Returns
    -------
    Tensor of shape (H, T, T)
        To be added to the scores before softmax. 0 where a query meets its own token, negative elsewhere.

    Notes
    -----
    The paper has causal models only, where no key follows its query. Here the distance counts in both
    directions, so that a bidirectional model cannot tell left from right by these biases.

    References
    ----------
    .. [1] Press et al., arXiv 2108.12409, section 3.

    Examples
    --------
    >>> alibi_bias(n_heads=2, seq_len=3)[0]
    tensor([[ 0.0000, -0.0625, -0.1250],
            [-0.0625,  0.0000, -0.0625],
            [-0.1250, -0.0625,  0.0000]])
    """
    check_whole("seq_len", seq_len, 1)
    return _distance_bias(alibi_slopes(n_heads), 0, seq_len)


def _distance_bias(slopes: Tensor, start: int, seq_len: int) -> Tensor:
    positions = torch.arange(start + seq_len, device=slopes.device)
    distances = (positions[start:, None] - positions).abs()  # (T, start + T)
    return slopes[:, None, None] * -distances  # (H, T, start + T)


class AlibiPositions(nn.Module):
    """Attention with linear biases, `alibi_bias`; nothing is learned, and nothing is saved."""

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(n_heads), persistent=False)

    def forward(self, q: Tensor, k: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys, (..., H, T, K) each, as they are, and `alibi_bias`.

        The bias, (H, T, start + T), counts `start` keys before these.
        """
        return q, k, _distance_bias(self.slopes, start, q.shape[-2]).to(q.dtype)
