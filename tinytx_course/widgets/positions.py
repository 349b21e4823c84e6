"""The positions explorer: the sinusoidal table, its clocks, how alike places are, and a shift as rotation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets

from tinytx.model.positions import frequencies, shift_matrix, sinusoidal_positions
from tinytx_course.widgets.base import Explorer, between, fixed, grouped
from tinytx_course.widgets.chain import number
from tinytx_course.widgets.picture import ACCENT, INK, LINE, SOFT, WARN, Picture

LONGEST, WIDEST, LARGEST_BASE = 512, 256, 10**9


class PositionsExplorer(Explorer):
    """See `positions`."""

    kind = "positions"
    title = "Positions explorer"

    max_len = traitlets.Int(50).tag(sync=True)
    d_model = traitlets.Int(32).tag(sync=True)
    base = traitlets.Int(10_000).tag(sync=True)
    position = traitlets.Int(23).tag(sync=True)
    hand = traitlets.Int(2).tag(sync=True)
    shift = traitlets.Int(4).tag(sync=True)

    @traitlets.validate("max_len")
    def _check_max_len(self, proposal: Any) -> int:
        return between(proposal, 2, LONGEST)

    @traitlets.validate("d_model")
    def _check_d_model(self, proposal: Any) -> int:
        if proposal.value % 2:
            raise ValueError(f"d_model must be even, got {proposal.value}")
        return between(proposal, 2, WIDEST)

    @traitlets.validate("base")
    def _check_base(self, proposal: Any) -> int:
        return between(proposal, 2, LARGEST_BASE)

    @traitlets.validate("position", "shift")
    def _check_place(self, proposal: Any) -> int:
        return between(proposal, 0, LONGEST - 1)

    @traitlets.validate("hand")
    def _check_hand(self, proposal: Any) -> int:
        return between(proposal, 0, WIDEST // 2 - 1)

    def chosen(self) -> tuple[int, int, int]:
        """Return place, hand and shift as shown: the last there is, where the table is smaller than asked."""
        last = self.max_len - 1
        return min(self.position, last), min(self.hand, self.d_model // 2 - 1), min(self.shift, last)

    def table(self) -> np.ndarray:
        """Return the sinusoidal positions, float64 of shape (max_len, D)."""
        return self._rows(self.max_len)

    def speeds(self) -> np.ndarray:
        """Return by how much each hand turns a place, in radians, of shape (D/2,)."""
        return frequencies(self.d_model, self.base).numpy()

    def rotation(self) -> np.ndarray:
        """Return what the shift does to the chosen hand, (2, 2): the block of R(k) on its diagonal."""
        _, hand, shift = self.chosen()
        block = slice(2 * hand, 2 * hand + 2)
        return shift_matrix(shift, self.d_model, self.base)[block, block].numpy()

    def tips(self) -> np.ndarray:
        """Return (sine, cosine) of the chosen hand at its place and k places on, of shape (2, 2)."""
        place, hand, shift = self.chosen()
        return self._rows(place + shift + 1)[[place, place + shift], 2 * hand : 2 * hand + 2]

    def similarity(self) -> np.ndarray:
        """Return ``PE(p) · PE(p + distance) / (D/2)`` for distances 0 to max_len - 1; 1 = same place."""
        table = self.table()
        return table @ table[0] / (self.d_model / 2)

    def _rows(self, n_rows: int) -> np.ndarray:
        return sinusoidal_positions(n_rows, self.d_model, self.base, dtype=torch.float64).numpy()

    def describe(self) -> str:
        """Say how the hands turn, where the chosen one stands and is turned to, and how alike places are."""
        place, hand, shift = self.chosen()
        speeds, alike = self.speeds(), self.similarity()[shift]
        fast, slow, own = (grouped(fixed(2 * math.pi / speeds[i], 1)) for i in (0, -1, hand))
        here, there = (f"({number(sine, 3)}, {number(cosine, 3)})" for sine, cosine in self.tips())
        return (
            f"{self.max_len} places, {self.d_model} dimensions, base {self.base:,}: {len(speeds)} hands; "
            f"the fastest comes round in {fast} places, the slowest in {slow}. "
            f"Place {place}: hand {hand} (dimensions {2 * hand} and {2 * hand + 1}, round in {own} places) "
            f"stands at (sine, cosine) = {here}. "
            f"R({shift}) turns it by {fixed(shift * speeds[hand], 3)} radians to {there}, "
            f"where it stands at place {place + shift}. Places {shift} apart: similarity {number(alike, 3)}, "
            f"dot product {number(alike * len(speeds), 2)} of {len(speeds)}."
        )

    def picture(self) -> Picture:
        """Draw the table, the clocks of the place, the turned hand, and similarity against distance."""
        place, hand, shift = self.chosen()
        picture = Picture(760, 400)
        picture.text(12, 14, f"{self.max_len} places (down), {self.d_model} dimensions (across)", bold=True)
        high = 256
        rows, columns = np.arange(128) * self.max_len // 128, np.arange(192) * self.d_model // 192
        picture.cells(12, 30, 2, (self.table()[np.ix_(rows, columns)] + 1) / 2)
        step, width = high / self.max_len, 384 / self.d_model
        picture.rect(12, 30 + place * step, 384, max(step, 3), outline=WARN, line=2)
        picture.rect(12 + 2 * hand * width, 30, max(2 * width, 4), high, outline=WARN, line=2)
        picture.text(12, 306, f"The hands of place {place}", bold=True)
        self._draw_clocks(picture, 12, 318, 384, place, hand)
        picture.text(430, 14, f"Hand {hand}: place {place}, and {shift} places on", bold=True)
        (here, there), center = self.tips(), (520, 104)
        _dial(picture, center, 72, [(here, ACCENT, 4), (there, WARN, 2)])
        for row, (one, two) in enumerate(self.rotation()):
            start = f"R({shift}) =" if row == 0 else ""
            picture.text(606, 94 + 20 * row, start)
            picture.text(700, 94 + 20 * row, number(one, 3), anchor="rm")
            picture.text(752, 94 + 20 * row, number(two, 3), anchor="rm")
        self._draw_similarity(picture, 460, 226, 285, 130, shift)
        return picture

    def _draw_clocks(self, picture: Picture, x: float, y: float, width: float, place: int, hand: int) -> None:
        angles = place * self.speeds()
        size = max(24.0, width / len(angles))
        a_row = int(width / size + 1e-9)
        for i, angle in enumerate(angles[: 3 * a_row]):
            center = (x + (i % a_row + 0.5) * size, y + 13 + (i // a_row) * 26)
            color = WARN if i == hand else ACCENT
            _dial(picture, center, 10, [((math.sin(angle), math.cos(angle)), color, 2)])

    def _draw_similarity(
        self, picture: Picture, x: float, y: float, width: float, height: float, shift: int
    ) -> None:
        alike, last = self.similarity(), self.max_len - 1
        picture.text(430, y - 18, "Similarity against distance", bold=True)
        picture.rect(x, y, width, height, outline=LINE)
        picture.line([(x, y + height / 2), (x + width, y + height / 2)], color=LINE, width=1)
        points = [(x + width * d / last, y + height * (1 - a) / 2) for d, a in enumerate(alike)]
        picture.line(points, color=ACCENT, width=2)
        at = x + width * shift / last
        picture.line([(at, y), (at, y + height)], color=WARN, width=1)
        picture.text(x + width, y + height + 14, f"distance up to {last} places", anchor="rm", color=SOFT)
        picture.text(x, y + height + 14, f"k = {shift}: {number(alike[shift], 3)}", color=WARN)
        for value in (-1, 0, 1):
            picture.text(x - 6, y + height * (1 - value) / 2, number(value, 0), anchor="rm", color=SOFT)


def _dial(picture: Picture, center: tuple[float, float], radius: float, hands: list) -> None:
    """Draw a clock; each hand is (sine, cosine), colour and width."""
    turns = np.linspace(0, 2 * math.pi, 49)
    rim = [(center[0] + radius * math.sin(t), center[1] - radius * math.cos(t)) for t in turns]
    picture.line(rim, color=INK if radius > 20 else LINE, width=1)
    for (sine, cosine), color, width in hands:
        tip = (center[0] + radius * float(sine), center[1] - radius * float(cosine))
        picture.line([center, tip], color=color, width=width)


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

    The chosen hand, of speed w, is turned by the angle k w: ``PE(pos + k) = R(k) PE(pos)``, wherever it
    stands. So the similarity of two places depends on their distance only.

    Parameters
    ----------
    max_len : int
        Places shown, 2 to 512. No row depends on it.
    d_model : int
        D, even, up to 256; two dimensions are one hand.
    base : int
        2 to 10^9; the slowest hand turns about `base` times slower than the fastest.
    position, hand, shift : int
        Which place and which hand are looked at, and how many places (k) the hand moves on. What lies
        outside the table counts as its last.

    Returns
    -------
    PositionsExplorer
        Its `table`, `rotation` and `similarity` hold the numbers as they stand.

    Raises
    ------
    ValueError
        If a number is out of range, or `d_model` is odd.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.5.

    Examples
    --------
    >>> explorer = positions(4, 4, base=100, position=1, hand=1, shift=2)
    >>> explorer.speeds()
    array([1. , 0.1])
    >>> explorer.tips().round(2)
    array([[0.1 , 1.  ],
           [0.3 , 0.96]])
    >>> explorer.rotation() @ explorer.tips()[0] - explorer.tips()[1] < 1e-12
    array([ True,  True])
    """
    return PositionsExplorer(
        max_len=max_len, d_model=d_model, base=base, position=position, hand=hand, shift=shift
    )
