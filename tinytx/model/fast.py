"""Linear maps of a few rows at a time, where reading the matrix is what takes time.

Shape letters: R rows, I numbers that come in, O numbers that go out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256  # of a byte


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each number to 0 with probability p, and scale the others so that the mean stays.

    Parameters
    ----------
    x : Tensor of any shape
    p : float
        In [0, 1). On a CPU it is rounded to a multiple of 1/256, but not to 0 unless it is 0; the scale is
        that of the rounded one, so that the mean is exact.

    Returns
    -------
    Tensor of the shape of x

    Notes
    -----
    torch draws a float for each number, one after the other, which on a CPU took a fifth of a training step.
    One draw of 64 bits decides on eight numbers here.
    """
    if p == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    return _ByteDropout.apply(x, min(max(round(p * LEVELS), 1), LEVELS - 1))


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, level: int) -> Tensor:
        n = x.numel()
        words = torch.empty((n + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        chances = words.view(torch.uint8)[:n]
        kept = torch.ge(chances, level, out=torch.empty_like(chances)).view(x.shape)
        scale = kept.to(x.dtype).mul_(LEVELS / (LEVELS - level))
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (scale,) = ctx.saved_tensors
        return grads[0] * scale, None


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` by `dropout`: nothing is dropped outside training."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop some of x where the module is in training."""
        return dropout(x, self.p) if self.training else x


LinearMap = Callable[[Tensor], Tensor]


def few_rows(maps: list[nn.Linear], n_rows: int) -> LinearMap:
    """Lay out the matrices of linear maps that read the same rows, as one map for so many rows.

    ``x (W_1 | W_2 | ...) + (b_1 | b_2 | ...)``: one product takes the place of several.

    Parameters
    ----------
    maps : list of torch.nn.Linear
        From I numbers each; all with a bias or none. Their weights are copied: what is learned later is not
        seen.
    n_rows : int
        R, how many rows will come at a time; other numbers give the same, but not as quickly.

    Returns
    -------
    callable
        From a Tensor of shape (R, I) to one of shape (R, O), what the maps give side by side.

    Notes
    -----
    torch keeps a matrix as (O, I). One row is multiplied fastest where the longer side lies contiguously in
    memory. For several rows the library of products rearranges the matrix at each call, which for few of them
    takes as long as the product itself; oneDNN lets one rearrange it once and for all.
    """
    with torch.no_grad():
        weight = torch.cat([each.weight for each in maps])  # (O, I)
        bias = None if maps[0].bias is None else torch.cat([each.bias for each in maps])  # (O,)
        if weight.device.type == "cpu":
            if n_rows > 1 and weight.dtype == torch.float32 and _ONEDNN:
                return _rearranged(weight, bias, n_rows)
            if n_rows == 1 and weight.shape[0] > weight.shape[1]:
                return partial(_transposed, weight.t().contiguous(), bias)
    return partial(F.linear, weight=weight, bias=bias)


# As `torch.compile` uses it for frozen weights; without it the plain product serves.
_ONEDNN = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)


def _rearranged(weight: Tensor, bias: Tensor | None, n_rows: int) -> LinearMap:
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, max(n_rows, 8))
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def _transposed(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    return x @ weight if bias is None else torch.addmm(bias, x, weight)
