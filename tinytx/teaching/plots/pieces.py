"""Texts cut into pieces, one row a way of cutting."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tinytx.teaching.plots.style import COLORS, name_axes, own_axes, style

FACES = ("#cfe3f2", "#f9dcc4")  # of neighbours in turn: pale blue, pale orange
GAP = 0.06  # left free on each side of a box, in letters


def piece_rows(
    rows: Mapping[str, Sequence[str]],
    *,
    unit: str = "pieces",
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw texts as boxes, one a piece, as wide as the piece has letters.

    Equal texts in several rows stand letter under letter, so that the eye sees boxes grow together.

    Parameters
    ----------
    rows : mapping of str to sequence of str
        From top to bottom: the name of a row, and its pieces.
    unit : str
        What is counted right of each row.
    xlabel, ylabel, title : str
        Name the axes.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes

    Raises
    ------
    ValueError
        If there is no row, or a row without a piece.
    """
    if not rows or not all(rows.values()):
        raise ValueError(f"rows must hold at least one row, and each a piece, got {dict(rows)}")
    longest = max(sum(map(len, pieces)) for pieces in rows.values())
    fig, ax = own_axes(ax, min(10.5, 2.6 + 0.2 * longest), 1.0 + 0.46 * len(rows))
    with style():
        for row, pieces in enumerate(rows.values()):
            left = 0
            for index, piece in enumerate(pieces):
                box = Rectangle(
                    (left + GAP, row - 0.38), len(piece) - 2 * GAP, 0.76,
                    facecolor=FACES[index % 2], edgecolor=COLORS[index % 2], linewidth=0.9,
                )  # fmt: skip
                ax.add_patch(box)
                for place, letter in enumerate(piece):
                    ax.text(
                        left + place + 0.5, row, letter, ha="center", va="center_baseline",
                        family="DejaVu Sans Mono", fontsize=12,
                    )  # fmt: skip
                left += len(piece)
            count = f"{len(pieces)} {unit}"
            ax.annotate(count, (longest, row), xytext=(8, 0), textcoords="offset points", va="center")
        ax.set(xlim=(0, longest), ylim=(len(rows) - 0.5, -0.5))
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xticks([])
        ax.tick_params(length=0)
        ax.grid(False)
        for side in ax.spines.values():
            side.set_visible(False)
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax
