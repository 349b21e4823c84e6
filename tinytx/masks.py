"""Boolean attention masks: True = may attend.

One sign everywhere, that of `torch.nn.functional.scaled_dot_product_attention`. Beware that
`torch.nn.MultiheadAttention` reads the opposite one: there, True = blocked.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tinytx.settings import require

Mask = Tensor | None  # of an argument that may be left out, which forbids nothing


def causal_mask(seq_len: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let every token attend to itself and to the tokens before it.

    ``mask[t, s] = (s <= t)``: the lower triangle, diagonal included.

    Parameters
    ----------
    seq_len : int
        T, at least 1.
    device : torch.device or str, optional
        Where the mask is made.

    Returns
    -------
    Tensor of shape (T, T), bool
        Row t: the keys that query t may attend to; every row has at least one True.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.2.3.

    Examples
    --------
    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    require(seq_len >= 1, "seq_len must be at least 1", seq_len)
    return torch.ones(seq_len, seq_len, dtype=torch.bool, device=device).tril()


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """Mark the real tokens of a padded batch, (B, S): True where the token is not `pad_id`.

    A row of this mask is about keys, not about pairs of query and key. ``padding_mask[:, None, None, :]``, of
    shape (B, 1, 1, S), broadcasts over the heads and queries of attention weights of shape (B, H, T, S).

    Parameters
    ----------
    token_ids : Tensor of shape (B, S)
    pad_id : int
        Id of the padding token.

    Returns
    -------
    Tensor of shape (B, S), bool

    Raises
    ------
    TypeError
        If `token_ids` is no tensor, or `pad_id` no int.

    Examples
    --------
    >>> padding_mask(torch.tensor([[7, 8, 9], [5, 0, 0]]), pad_id=0)
    tensor([[ True,  True,  True],
            [ True, False, False]])
    """
    if not isinstance(token_ids, Tensor) or not isinstance(pad_id, int):
        got = f"{type(token_ids).__name__} and {type(pad_id).__name__}"
        raise TypeError(f"token_ids must be a tensor and pad_id an int, got {got}")
    return token_ids != pad_id


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Allow what every mask allows: their logical AND, of the shape to which they broadcast.

    None forbids nothing; the result is None if all masks are.

    Raises
    ------
    TypeError
        If a mask is not boolean: the sign of one that is added to scores, or of 0 and 1, could be misread.
    ValueError
        If the masks do not broadcast.

    Examples
    --------
    >>> combine_masks(causal_mask(3), torch.tensor([False, True, True])).int()
    tensor([[0, 0, 0],
            [0, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        check_bool(mask, "mask")
        if combined is not None and not agree(combined.shape, mask.shape):
            got = f"{tuple(combined.shape)} and {tuple(mask.shape)}"
            raise ValueError(f"masks must broadcast, got shapes {got}")
        combined = mask if combined is None else combined & mask
    return combined


def agree(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes broadcast."""
    pairs = zip(reversed(left), reversed(right), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def dtype_of(given: object) -> torch.dtype | str:
    """The dtype of a tensor, or what something else is, for errors."""
    return given.dtype if isinstance(given, Tensor) else f"a {type(given).__name__}"


def check_bool(mask: Tensor, name: str) -> None:
    """Raise TypeError for masks of 0 and -inf, or of 0 and 1: their sign could be misread."""
    if not (isinstance(mask, Tensor) and mask.dtype == torch.bool):
        raise TypeError(f"{name} must be a boolean tensor (True = may attend), got {dtype_of(mask)}")
