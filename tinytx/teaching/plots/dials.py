"""Angles as the hands of clocks."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from tinytx.teaching.plots.style import COLORS, name_axes, numbers_of, own_axes, style


def dials(
    angles,
    *,
    row_labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw each angle as a clock with one hand, which starts upright and turns clockwise.

    The tip of the hand stands at ``(sin angle, cos angle)`` from the middle of its clock.

    Parameters
    ----------
    angles : Tensor or array of shape (rows, columns)
        In radians.
    row_labels, col_labels : sequence of str, optional
        What a row and a column of clocks share; numbered when left out.
    xlabel, ylabel, title : str
        Name the axes with their units.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    values = numbers_of(angles)
    if values.ndim != 2:
        raise ValueError(f"angles must have two axes, got shape {values.shape}")
    rows, cols = values.shape
    fig, ax = own_axes(ax, min(9.0, 1.8 + 0.66 * cols), min(8.0, 1.1 + 0.66 * rows))
    radius = 0.4
    with style():
        for row in range(rows):
            color = COLORS[row % len(COLORS)]
            for col in range(cols):
                angle = values[row, col]
                tip = (col + radius * math.sin(angle), row - radius * math.cos(angle))  # rows run downwards
                ax.add_patch(Circle((col, row), radius, facecolor="#f6f6f6", edgecolor="#999999"))
                ax.plot([col, col], [row - radius, row - 0.8 * radius], color="#999999", linewidth=1.2)
                ax.plot([col, tip[0]], [row, tip[1]], color=color, solid_capstyle="round", linewidth=2.6)
                ax.plot([col], [row], color=color, marker="o", markersize=4)
        ax.set(xlim=(-0.6, cols - 0.4), ylim=(rows - 0.4, -0.6), aspect="equal")
        ax.set_xticks(range(cols), col_labels or [str(col) for col in range(cols)])
        ax.set_yticks(range(rows), row_labels or [str(row) for row in range(rows)])
        ax.grid(False)
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax
