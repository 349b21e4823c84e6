"""Rotary positions: queries and keys are turned, so that their product knows how far apart they stand.

Nothing is added to the embeddings. Shape letters: T queries, S keys, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tinytx.model.positions import clock_speeds


def rotate_by_position(x: Tensor, positions: Tensor | None = None, base: float = 10_000.0) -> Tensor:
    """Turn each vector by the rotation that belongs to its place: ``R(pos) x``.

    R(pos) is `shift_matrix`: it turns the pair of numbers (2i, 2i + 1) by the angle ``pos base^(-2i / K)``.
    As ``R(t) q · R(s) k = q · R(s - t) k``, the product of a turned query and a turned key depends on where
    they stand by their distance alone.

    Parameters
    ----------
    x : Tensor of shape (..., T, K)
        Queries or keys, K even.
    positions : Tensor of shape (T,), optional
        The place of each; 0, 1, ... T - 1 where not given.
    base : float
        As in `sinusoidal_positions`.

    Returns
    -------
    Tensor of shape (..., T, K)
        Every vector keeps its length.

    Raises
    ------
    ValueError
        If K is odd, `base` is not positive, or `positions` has another shape.

    Notes
    -----
    Angles are computed in float64. The paper turns the other way, by ``R(-pos)``: the same up to the order of
    the two numbers of a pair. Some models (Llama) pair number i with number i + K/2 instead.

    References
    ----------
    .. [1] Su et al., "RoFormer", arXiv 2104.09864, section 3.2, equations 14 and 15.

    Examples
    --------
    The clock of place 0 shows (0, 1); turned by place 2 it shows what `sinusoidal_positions` says of place 2:

    >>> rotate_by_position(torch.tensor([[0.0, 1.0]]), torch.tensor([2]))      # sin 2, cos 2
    tensor([[ 0.9093, -0.4161]])
    """
    seq_len = x.shape[-2]
    if positions is None:
        positions = torch.arange(seq_len, device=x.device)
    if positions.shape != (seq_len,):
        raise ValueError(f"positions must have shape ({seq_len},), got {tuple(positions.shape)}")
    cos, sin = _cosines_and_sines(positions, x.shape[-1], base)
    return _turn(x, cos, sin)


def _cosines_and_sines(positions: Tensor, head_dim: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines of all angles, (T, K/2) each, in float64."""
    speeds = clock_speeds(head_dim, base, name="head_dim").to(positions.device)
    angles = torch.outer(positions.double(), speeds)  # (T, K/2)
    return angles.cos(), angles.sin()


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs of x, (..., T, K), by angles of which (T, K/2) cosines and sines are given."""
    first, second = x.unflatten(-1, (-1, 2)).unbind(-1)  # (..., T, K/2) each
    turned = torch.stack((cos * first + sin * second, cos * second - sin * first), dim=-1)
    return turned.flatten(-2).to(x.dtype)  # (..., T, K)


class RotaryPositions(nn.Module):
    """Turn queries and keys by their places before attention compares them.

    Parameters
    ----------
    max_len : int
        Longest sequence, in tokens.
    head_dim : int
        K, even.
    base : float
        As in `sinusoidal_positions`.

    Raises
    ------
    ValueError
        If `head_dim` is odd, or a size or `base` is not positive.

    Notes
    -----
    Nothing is learned, and nothing is saved. Values are not turned: what a token says does not depend on its
    place.

    References
    ----------
    .. [1] Su et al., "RoFormer", arXiv 2104.09864, section 3.2.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, max_len: int, head_dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        if max_len < 1:
            raise ValueError(f"max_len must be at least 1, got {max_len}")
        tables = _cosines_and_sines(torch.arange(max_len), head_dim, base)  # (max_len, K/2) each
        for name, table in zip(("cos", "sin"), tables, strict=True):
            self.register_buffer(name, table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, None]:
        """Turn queries and keys.

        Parameters
        ----------
        q : Tensor of shape (..., T, K)
            Queries, which stand at the last T of the S places.
        k : Tensor of shape (..., S, K)
            Keys, which stand at places 0 to S - 1.

        Returns
        -------
        tuple of Tensor of shape (..., T, K), Tensor of shape (..., S, K), None
            Queries and keys, turned; nothing is added to their scores.

        Raises
        ------
        ValueError
            If there are more queries than keys, or more keys than `max_len`.
        """
        seq_len, mem_len = q.shape[-2], k.shape[-2]
        if mem_len < seq_len:
            raise ValueError(f"there must be at least as many keys as queries, got T={seq_len}, S={mem_len}")
        if mem_len > len(self.cos):
            raise ValueError(f"a sequence must hold at most max_len={len(self.cos)} tokens, got {mem_len}")
        cos, sin = self.cos[:mem_len], self.sin[:mem_len]  # (S, K/2)
        return _turn(q, cos[-seq_len:], sin[-seq_len:]), _turn(k, cos, sin), None

    def turn(self, x: Tensor, start: int) -> Tensor:
        """Turn queries or keys, (..., T, K), of which the first stands at place `start`."""
        end = start + x.shape[-2]
        return _turn(x, self.cos[start:end], self.sin[start:end])
