"""The explorer of shapes: one block, from (B, T, D) through the heads and back, entry by entry."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import traitlets

from tinytx_course.widgets.base import Explorer, between
from tinytx_course.widgets.block_steps import Step, block_steps
from tinytx_course.widgets.picture import ACCENT, INK, LINE, SOFT, Picture, blues

_MOST = {"B": 4, "T": 8, "D": 16, "F": 32}
_MOST_DRAWN = 120  # entries in a still, which must stay small


class ShapesExplorer(Explorer):
    """See `shapes`."""

    kind = "shapes"
    title = "Shapes through one block"

    sizes = traitlets.Dict().tag(sync=True)
    steps = traitlets.List(traitlets.Dict()).tag(sync=True)
    n_heads = traitlets.Int(1).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    token = traitlets.Int(0).tag(sync=True)
    column = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("n_heads")
    def _check_heads(self, proposal: Any) -> int:
        if proposal.value < 1 or self.sizes["D"] % proposal.value:
            raise ValueError(
                f"n_heads must divide d_model, got d_model={self.sizes['D']}, n_heads={proposal.value}"
            )
        return proposal.value

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        return between(proposal, 0, len(self.steps) - 1)

    @traitlets.validate("token")
    def _check_token(self, proposal: Any) -> int:
        return between(proposal, 0, self.sizes["B"] * self.sizes["T"] - 1)

    @traitlets.validate("column")
    def _check_column(self, proposal: Any) -> int:
        return between(proposal, 0, self.sizes["D"] - 1)

    def now(self) -> Step:
        """Return the step that is shown."""
        return Step(**self.steps[self.step])

    def shape(self) -> tuple[int, ...]:
        """Return the shape of what is shown."""
        head_dim = self.sizes["D"] // self.n_heads
        known = {**self.sizes, "S": self.sizes["T"], "H": self.n_heads, "K": head_dim}
        return tuple(known[axis] for axis in self.now().axes)

    def entry(self) -> dict[str, int]:
        """Return the entry that is followed: its indices b, t and d, its head h and its place k in there."""
        b, t = divmod(self.token, self.sizes["T"])
        h, k = divmod(self.column, self.sizes["D"] // self.n_heads)
        return {"b": b, "t": t, "d": self.column, "h": h, "k": k}

    def labels(self) -> np.ndarray:
        """Return what stands on each entry, an array of str in the shape of what is shown.

        Entries of a row of D carry their (b, t, d) wherever they go; a score its query and its key.
        """
        axes, sizes = self.now().axes, self.sizes
        if axes == "BHTS":
            pairs = [[f"{t}→{s}" for s in range(sizes["T"])] for t in range(sizes["T"])]
            return np.broadcast_to(pairs, self.shape())
        width = sizes["F" if axes == "BTF" else "D"]
        mark = "" if max(sizes["B"], sizes["T"], width) <= 10 else ","
        flat = [
            mark.join(map(str, index)) for index in np.ndindex(sizes["B"], sizes["T"], width)
        ]  # in the order in which they lie in memory
        here = np.array(flat).reshape(sizes["B"], sizes["T"], width)
        if axes in ("BTD", "BTF"):
            return here
        cut = here.reshape(sizes["B"], sizes["T"], self.n_heads, -1)  # (B, T, D) -> (B, T, H, K)
        return cut if axes == "BTHK" else cut.swapaxes(1, 2)  # (B, H, T, K)

    def describe(self) -> str:
        """Say what the step does, what comes out of it, and where the entry is that is followed."""
        now, shape = self.now(), self.shape()
        times = f", {now.copies} times" if now.copies > 1 else ""
        learned = f"{now.formula} = {now.n_params} parameters" if now.n_params else "no parameters"
        return (
            f"Step {self.step + 1} of {len(self.steps)}, {now.name}: {now.code}. "
            f"Shape ({', '.join(now.axes)}) = ({', '.join(map(str, shape))}): "
            f"{math.prod(shape)} numbers{times}, {learned}. {now.say} {self._whereabouts(now)}"
        )

    def _whereabouts(self, now: Step) -> str:
        at = self.entry()
        name = f"Entry (b {at['b']}, t {at['t']}, d {at['d']})"
        if now.axes == "BTF":
            return f"Token (b {at['b']}, t {at['t']}) is row [{at['b']}, {at['t']}, :]."
        if now.axes == "BHTS":
            return (
                f"{name} is in head {at['h']}: the row of its token there is "
                f"[{at['b']}, {at['h']}, {at['t']}, :]."
            )
        place = ", ".join(str(at[axis.lower()]) for axis in now.axes)
        head = f" and belongs to head {at['h']}" if now.in_heads else ""
        return f"{name} stands at [{place}]{head}."

    def picture(self) -> Picture:
        """Draw the steps with shapes and parameters, and of the present one the followed batch."""
        row, labels, at = 19, self.labels()[self.entry()["b"]], self.entry()
        title = f"{self.now().name}, b = {at['b']}"
        tables: list[tuple[int | None, np.ndarray]] = [(None, labels.reshape(len(labels), -1))]
        if self.now().axes[1] == "H":
            tables = list(enumerate(labels))
            if labels.size > _MOST_DRAWN:
                tables, title = [tables[at["h"]]], f"{title}, only head {at['h']}"
        (n_rows, n_cols), room = tables[0][1].shape, 370
        fair = max((room + 10) // len(tables), 28 * n_cols + 10) - 10  # all in one line, or not too small
        wide, high = min(44, fair // n_cols, room // n_cols), 24 * n_rows + 12
        in_line = max(1, (room + 10) // (wide * n_cols + 10))
        n_lines = -(-len(tables) // in_line)
        picture = Picture(760, max(46 + row * (len(self.steps) + 1), 40 + high * n_lines))
        self._draw_steps(picture, row)
        picture.text(376, 14, title, bold=True)
        for i, (head, table) in enumerate(tables):
            line, place = divmod(i, in_line)
            corner = (376 + place * (wide * n_cols + 10), 32 + line * high)
            self._draw_table(picture, corner, wide, table, head)
        return picture

    def _draw_steps(self, picture: Picture, row: int) -> None:
        """List the steps, the present one marked."""
        for x, words, anchor in ((14, "One block", "lm"), (196, "shape", "lm"), (334, "parameters", "rm")):
            picture.text(x, 14, words, color=SOFT, anchor=anchor)
        for i, each in enumerate(self.steps):
            y, bold = 38 + i * row, i == self.step
            if bold:
                picture.rect(6, y - row / 2, 336, row, fill=blues(0.15), outline=ACCENT)
            picture.text(14, y, each["name"], bold=bold)
            picture.text(196, y, f"({', '.join(each['axes'])})", bold=bold)
            picture.text(334, y, str(each["n_params"] or "–"), anchor="rm", bold=bold)
        total = sum(each["n_params"] for each in self.steps)
        picture.text(334, 38 + len(self.steps) * row, f"together {total}", anchor="rm", bold=True)

    def _draw_table(
        self, picture: Picture, corner: tuple[int, int], wide: int, table: np.ndarray, head: int | None
    ) -> None:
        """Draw one table of labels: the token framed, the head tinted, the entry solid."""
        (x, y), high, at, now = corner, 24, self.entry(), self.now()
        head_dim = self.sizes["D"] // self.n_heads
        for (t, c), label in np.ndenumerate(table):
            h = c // head_dim if head is None else head
            mine = now.in_heads and h == at["h"]
            column = c if head is None else head * head_dim + c
            exact = now.axes not in ("BHTS", "BTF") and (t, column) == (at["t"], at["d"])
            fill = blues(0.8 if exact else 0.3 if mine else 0.0)
            place = (x + c * wide, y + t * high)
            picture.rect(*place, wide, high, fill=fill, outline=LINE)
            middle = (place[0] + wide / 2, place[1] + high / 2)
            color, size = "#ffffff" if exact else INK, min(11, int(1.8 * wide / len(label)))
            picture.text(*middle, str(label), anchor="mm", color=color, size=size)
        picture.rect(x, y + at["t"] * high, wide * len(table[0]), high, outline=INK, line=2)


def shapes(
    batch_size: int = 2,
    seq_len: int = 5,
    d_model: int = 8,
    n_heads: int = 4,
    d_ff: int = 10,
    *,
    step: int = 4,
    token: tuple[int, int] | None = None,
    column: int | None = None,
) -> ShapesExplorer:
    """Follow the entries of a tensor through one block: into heads, through attention, and back.

    Each entry carries the (b, t, d) where it stood before the row was cut into heads. One of them, with its
    token and its head, is marked in every step.

    Parameters
    ----------
    batch_size, seq_len, d_model : int
        B up to 4, T up to 8, D up to 16.
    n_heads : int
        H; divides D.
    d_ff : int
        F up to 32.
    step : int
        0 to 15.
    token : (int, int), optional
        b and t of the token that is followed; one in the middle when left out.
    column : int, optional
        d of the entry that is followed; one further right when left out.

    Returns
    -------
    ShapesExplorer

    Raises
    ------
    ValueError
        If a size is out of range, n_heads does not divide d_model, or the entry does not exist.

    Examples
    --------
    >>> explorer = shapes(1, 2, 6, 3, step=4)
    >>> explorer.shape()
    (1, 3, 2, 2)
    >>> explorer.labels()[0, 2]
    array([['004', '005'],
           ['014', '015']], dtype='<U3')
    """
    sizes = {"B": batch_size, "T": seq_len, "D": d_model, "F": d_ff}
    for axis, size in sizes.items():
        if not 1 <= size <= _MOST[axis]:
            raise ValueError(f"{axis} must lie in 1..{_MOST[axis]}, got {size}")
    b, t = (batch_size // 2, seq_len // 2) if token is None else token
    if not (0 <= b < batch_size and 0 <= t < seq_len):
        raise ValueError(f"token must lie in ({batch_size}, {seq_len}), got {token}")
    steps = [asdict(each) for each in block_steps(d_model, d_ff)]
    return ShapesExplorer(
        sizes=sizes,
        steps=steps,
        n_heads=n_heads,
        step=step,
        token=b * seq_len + t,
        column=2 * d_model // 3 if column is None else column,
    )
