"""The explorer of shapes: one block, from (B, T, D) through the heads and back, entry by entry."""

from __future__ import annotations

from typing import Any

import traitlets

from tinytx_course.widgets.base import Explorer, bounded

_MOST = {"B": 4, "T": 8, "D": 16, "F": 32}
_LAST_STEP, _LONGEST = 15, 16  # as in js/shapes.js


class ShapesExplorer(Explorer):
    """See `shapes`."""

    kind = "shapes"
    title = traitlets.Unicode("Shapes through one block").tag(sync=True)

    sizes = traitlets.Dict().tag(sync=True)  # B, T, D and F, as at first
    seq_len = bounded(1, 1, _LONGEST)  # T, as it is moved
    n_heads = traitlets.Int(1).tag(sync=True)
    step = bounded(0, 0, _LAST_STEP)
    token = bounded(0, 0, lambda its: its.sizes["B"] * its.seq_len - 1)  # b · T + t
    column = bounded(0, 0, lambda its: its.sizes["D"] - 1)

    @traitlets.validate("n_heads")
    def _check_heads(self, proposal: Any) -> int:
        d_model = self.sizes["D"]
        if proposal.value < 1 or d_model % proposal.value:
            raise ValueError(f"n_heads must divide d_model, got d_model={d_model}, n_heads={proposal.value}")
        return proposal.value

    def summary(self) -> str:
        """Return what is shown, and the sizes."""
        sizes = ", ".join(f"{axis} = {size}" for axis, size in (self.sizes | {"T": self.seq_len}).items())
        return (
            "The sixteen steps of a transformer block with code, shapes and parameters; one entry is "
            f"followed into the heads and back. {sizes}, {self.n_heads} heads, step {self.step + 1}."
        )


def shapes(
    batch_size: int = 2,
    seq_len: int = 5,
    d_model: int = 8,
    n_heads: int = 4,
    d_ff: int = 10,
    *,
    step: int = 4,
) -> ShapesExplorer:
    """Follow the entries of a tensor through one block: into heads, through attention, and back.

    Each entry carries the indices (b, t, d) that it had before its row was split into heads. One of them,
    at first about the middle, is marked in every step with its token and its head. T may be moved: the list
    says how many numbers each step gives.

    Parameters
    ----------
    batch_size, seq_len, d_model : int
        B up to 4, T at first, up to 8, D up to 16.
    n_heads : int
        H; divides D.
    d_ff : int
        F up to 32.
    step : int
        0 to 15.

    Raises
    ------
    ValueError
        If a size is out of range, or n_heads does not divide d_model.

    Examples
    --------
    >>> explorer = shapes(1, 2, 6, 3)
    >>> explorer.token, explorer.column
    (1, 4)
    """
    sizes = {"B": batch_size, "T": seq_len, "D": d_model, "F": d_ff}
    for axis, size in sizes.items():
        if not 1 <= size <= _MOST[axis]:
            raise ValueError(f"{axis} must lie in 1..{_MOST[axis]}, got {size}")
    return ShapesExplorer(
        sizes=sizes,
        seq_len=seq_len,
        n_heads=n_heads,
        step=step,
        token=batch_size // 2 * seq_len + seq_len // 2,
        column=2 * d_model // 3,
    )
