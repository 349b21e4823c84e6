"""The positions explorer: the sinusoidal table, its clocks, similarity, and a shift as a rotation."""

from __future__ import annotations

from typing import Any

import traitlets

from tinytx_course.widgets.base import Explorer, between, bounded

LONGEST, WIDEST, LARGEST_BASE = 512, 256, 10**9


class PositionsExplorer(Explorer):
    """See `positions`."""

    kind = "positions"
    title = traitlets.Unicode("Positions explorer").tag(sync=True)

    max_len = bounded(50, 2, LONGEST)
    d_model = traitlets.Int(32).tag(sync=True)
    base = bounded(10_000, 2, LARGEST_BASE)
    position = bounded(23, 0, LONGEST - 1)
    hand = bounded(2, 0, WIDEST // 2 - 1)
    shift = bounded(4, 0, LONGEST - 1)
    mode = traitlets.Enum(["added", "rotary"], "added").tag(sync=True)

    @traitlets.validate("d_model")
    def _check_width(self, proposal: Any) -> int:
        if proposal.value % 2:
            raise ValueError(f"d_model must be even, got {proposal.value}")
        return between(proposal, 2, WIDEST)

    def summary(self) -> str:
        """Return what is shown, and the sizes of the table."""
        return (
            "Sinusoidal positions as a table, as clocks of different speeds, by similarity against "
            f"distance, and a shift as a rotation. {self.max_len} positions, {self.d_model} dimensions, "
            f"base {self.base:,}."
        )


def positions(
    max_len: int = 50,
    d_model: int = 32,
    base: int = 10_000,
    *,
    position: int = 23,
    hand: int = 2,
    shift: int = 4,
) -> PositionsExplorer:
    """Explore sinusoidal positions: a table, read as clocks whose hands turn at different speeds.

    A shift by k positions turns the chosen hand, of speed w, by the angle k w, whatever its position:
    ``PE(pos + k) = R(k) PE(pos)``. So the similarity of two positions depends on their distance only. In
    `mode` "rotary" the hand turns a query and a key instead, and their product depends on the distance only.

    Parameters
    ----------
    max_len : int
        Positions shown, 2 to 512. No row depends on it.
    d_model : int
        D, even, up to 256; two dimensions are one hand.
    base : int
        2 to 10^9; the slowest hand turns about `base` times slower than the fastest.
    position, hand, shift : int
        The position and the hand that are marked, and the shift k. A number beyond the end of the table
        counts as its last.

    Raises
    ------
    ValueError
        If a number is out of range, or `d_model` is odd.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5.

    Examples
    --------
    >>> positions(4, 4, base=100).summary().split(". ")[1]
    '4 positions, 4 dimensions, base 100.'
    """
    return PositionsExplorer(
        max_len=max_len, d_model=d_model, base=base, position=position, hand=hand, shift=shift
    )
