"""Matrices as coloured cells."""

from collections.abc import Sequence

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tinytx.teaching.plots.style import COLORS, name_axes, numbers_of, own_axes, style

MANY_CELLS = 2_500  # an SVG keeps more as one picture: a shape for each would make it large


def heatmap(
    matrix,
    *,
    allowed=None,
    row_labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    low: float | None = None,
    high: float | None = None,
    cmap: str | Colormap | None = None,
    bar_label: str | None = None,
    numbers: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a matrix as coloured cells, with masked cells hatched so that nobody takes them for zeros.

    What is not a number stands out: such a cell is left white and reads NaN.

    Parameters
    ----------
    matrix : Tensor or array of shape (T, S)
        Rows are drawn downwards, as attention is written.
    allowed : bool Tensor or array of shape (T, S), optional
        True = may attend, the sign of every mask in tinytx; where False the cell is grey and hatched.
    row_labels, col_labels : sequence of str, optional
        Such as the tokens; left out, a few positions are numbered.
    xlabel, ylabel, title : str
        Name the axes with their units.
    low, high : float, optional
        Ends of the colour scale; fix them where figures are compared.
    cmap : str or Colormap, optional
        Blues for what is nowhere negative, else red over white (zero) to blue.
    bar_label : str, optional
        Name of the colour bar; without one there is no bar.
    numbers : str, optional
        Format such as ``".2f"`` to write each value into its cell.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    values = numbers_of(matrix)
    if values.ndim != 2:
        raise ValueError(f"matrix must have two axes, got shape {values.shape}")
    hidden = None if allowed is None else numbers_of(allowed) == 0
    if hidden is not None and hidden.shape != values.shape:
        raise ValueError(f"allowed must have the shape of matrix, {values.shape}, got {hidden.shape}")
    rows, cols = values.shape
    signed = bool((np.nan_to_num(values) < 0).any())
    lines = [line for label in col_labels or () for line in label.split("\n")]
    longest = max(map(len, lines), default=0)
    cell = 0.42 if longest <= 3 else 0.6
    size = {"width": min(9.0, 3.2 + cell * cols), "height": min(7.0, 2.0 + 0.42 * rows)}
    fig, ax = own_axes(ax, **size)
    with style():
        sns.heatmap(
            values,
            mask=hidden,
            ax=ax,
            vmin=low,
            vmax=high,
            center=0 if signed else None,
            cmap=cmap or ("RdBu" if signed else "Blues"),
            annot=numbers is not None,
            fmt=numbers or "",
            cbar=bar_label is not None,
            cbar_kws={"label": bar_label} if bar_label is not None else None,
            linewidths=0.6 if max(rows, cols) <= 24 else 0,
            linecolor="#bbbbbb",
            rasterized=values.size > MANY_CELLS,
            xticklabels="auto" if col_labels is None else list(col_labels),
            yticklabels="auto" if row_labels is None else list(row_labels),
        )
        ax.grid(False)
        ax.tick_params(axis="y", rotation=0, length=0)
        ax.tick_params(axis="x", length=0)
        if longest > 6 or (longest > 3 and cols > 9):
            for tick in ax.get_xticklabels():
                tick.set(rotation=40, ha="right", rotation_mode="anchor")
        name_axes(ax, title, xlabel, ylabel)
        if hidden is not None and hidden.any():
            _hatch_what_is_masked(fig, ax)
        _name_what_is_no_number(ax, values, hidden)
    return fig, ax


def _hatch_what_is_masked(fig: Figure, ax: Axes) -> None:
    """Hatch the ground of the axes, which shows through where seaborn leaves a cell out."""
    face, line, hatch = "#c9c9c9", "#8a8a8a", "////"
    ax.patch.set(facecolor=face, edgecolor=line, hatch=hatch, linewidth=0)
    if not fig.legends:
        masked = Patch(label="masked", facecolor=face, edgecolor=line, hatch=hatch)
        fig.legend(handles=[masked], loc="outside lower right")


def _name_what_is_no_number(ax: Axes, values: np.ndarray, hidden: np.ndarray | None) -> None:
    """Write NaN into the cells that have no colour, which would otherwise look like the ground."""
    broken = np.isnan(values) if hidden is None else np.isnan(values) & ~hidden
    for row, col in np.argwhere(broken):
        ax.add_patch(Rectangle((col, row), 1, 1, facecolor="white", edgecolor=COLORS[1], linewidth=1.2))
        ax.text(col + 0.5, row + 0.5, "NaN", color=COLORS[1], ha="center", va="center", fontsize=9)
