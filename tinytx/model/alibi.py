"""ALiBi, attention with linear biases: scores are lowered by the distance between query and key.

Nothing is added to the embeddings. Shape letters: H heads, T queries, S keys, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def alibi_slopes(n_heads: int) -> Tensor:
    """Say by how much each head lowers a score per token of distance.

    ``2^(-8h / H)`` for h = 1 ... H where H is a power of two. Otherwise the slopes of the next smaller power
    of two, and then every second slope of twice as many heads, until there are H.

    Parameters
    ----------
    n_heads : int
        H, at least 1.

    Returns
    -------
    Tensor of shape (H,)
        Between 0 and 1.

    Raises
    ------
    ValueError
        If `n_heads` is smaller than 1.

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
    if n_heads < 1:
        raise ValueError(f"n_heads must be at least 1, got {n_heads}")
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above H
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    slopes += [2 ** (-4 * h / power) for h in range(1, 2 * power, 2)]
    return torch.tensor(slopes[:n_heads])


def alibi_bias(n_heads: int, seq_len: int, mem_len: int | None = None) -> Tensor:
    """Lower each score by the distance between query and key, in each head by another slope.

    ``-slope_h |t - s|``

    Parameters
    ----------
    n_heads : int
        H, at least 1.
    seq_len : int
        T, how many queries.
    mem_len : int, optional
        S, how many keys, at least T; as many as queries where not given. The queries stand at the last T of
        the S places.

    Returns
    -------
    Tensor of shape (H, T, S)
        To be added to the scores before softmax. 0 where a query meets its own token, negative elsewhere.

    Raises
    ------
    ValueError
        If `n_heads` is smaller than 1, or `mem_len` smaller than `seq_len`.

    Notes
    -----
    The paper has causal models only, where no key stands after its query. Here one that does is as far as one
    that stands before, so that a model that looks both ways cannot tell left from right by these biases.

    References
    ----------
    .. [1] Press et al., "Train Short, Test Long", arXiv 2108.12409, section 3.

    Examples
    --------
    >>> alibi_bias(n_heads=2, seq_len=3)[0]
    tensor([[ 0.0000, -0.0625, -0.1250],
            [-0.0625,  0.0000, -0.0625],
            [-0.1250, -0.0625,  0.0000]])
    """
    return _lower_by_distance(alibi_slopes(n_heads), seq_len, seq_len if mem_len is None else mem_len)


def _lower_by_distance(slopes: Tensor, seq_len: int, mem_len: int) -> Tensor:
    if mem_len < seq_len:
        raise ValueError(f"there must be at least as many keys as queries, got T={seq_len}, S={mem_len}")
    places = torch.arange(mem_len, device=slopes.device)
    distances = (places[mem_len - seq_len :, None] - places).abs()  # (T, S)
    return slopes[:, None, None] * -distances  # (H, T, S)


class AlibiPositions(nn.Module):
    """Lower the score of what is far away: attention with linear biases.

    Parameters
    ----------
    n_heads : int
        H, at least 1.

    Notes
    -----
    Nothing is learned, and nothing is saved.

    References
    ----------
    .. [1] Press et al., "Train Short, Test Long", arXiv 2108.12409, section 3.
    """

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(n_heads), persistent=False)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Leave queries and keys alone, and say what to add to their scores.

        Parameters
        ----------
        q : Tensor of shape (..., H, T, K)
            Queries, which stand at the last T of the S places.
        k : Tensor of shape (..., H, S, K)
            Keys, which stand at places 0 to S - 1.

        Returns
        -------
        tuple of q, k, and a Tensor of shape (H, T, S)
            As `alibi_bias` has it, in the dtype of q.

        Raises
        ------
        ValueError
            If there are more queries than keys.
        """
        return q, k, _lower_by_distance(self.slopes, q.shape[-2], k.shape[-2]).to(q.dtype)
