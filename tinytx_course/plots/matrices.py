"""Matrices as heat maps, and stacks of layers as rows of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tinytx.settings import require
from tinytx_course.plots.style import COLORS, PlainNumbers, label_axes, own_axes, style, to_array

MANY_CELLS = 2_500  # an SVG stores more as one picture: a shape for each would make it large


@style()
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
    bar_label: str | None = None,
    numbers: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a matrix as coloured cells, with masked cells hatched to tell them from zeros.

    Colours are blues, or run from red through white (zero) to blue where `low`, or without it a value, is
    negative. A cell that is not a number is white and reads NaN.

    Parameters
    ----------
    matrix : Tensor or array of shape (T, S)
        Rows are drawn downwards, as attention is written.
    allowed : bool Tensor or array of shape (T, S), optional
        True = may attend, as in every mask of tinytx; where False the cell is grey and hatched.
    row_labels, col_labels : sequence of str, optional
        Such as the tokens; positions are numbered by default.
    low, high : float, optional
        Ends of the colour scale; fix them where figures are compared.
    bar_label : str, optional
        Name of the colour bar; without one there is no bar.
    numbers : str, optional
        Format such as ``".2f"`` to write each value into its cell.
    """
    values = to_array(matrix)
    require(values.ndim == 2, "matrix must have two axes", f"shape {values.shape}")
    hidden = None if allowed is None else to_array(allowed) == 0
    if hidden is not None and hidden.shape != values.shape:
        raise ValueError(f"allowed must have the shape of matrix, {values.shape}, got {hidden.shape}")
    rows, cols = values.shape
    signed = bool((np.nan_to_num(values) < 0).any()) if low is None else low < 0
    lines = [line for label in col_labels or () for line in label.split("\n")]
    longest = max(map(len, lines), default=0)
    cell = 0.42 if longest <= 3 else 0.6
    size = {"width": min(9.0, 3.2 + cell * cols), "height": min(7.0, 2.0 + 0.42 * rows)}
    fig, ax = own_axes(ax, **size)
    sns.heatmap(
        values,
        mask=hidden,
        ax=ax,
        vmin=low,
        vmax=high,
        center=0 if signed else None,
        cmap="RdBu" if signed else "Blues",
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
    label_axes(ax, title, xlabel, ylabel)
    if hidden is not None and hidden.any():
        _hatch_masked_cells(fig, ax)
    _mark_nan_cells(ax, values, hidden)
    return fig, ax


def _hatch_masked_cells(fig: Figure, ax: Axes) -> None:
    """Hatch the background of the axes, which shows where seaborn leaves a cell out."""
    face, line, hatch = "#c9c9c9", "#8a8a8a", "////"
    ax.patch.set(facecolor=face, edgecolor=line, hatch=hatch, linewidth=0)
    if not fig.legends:
        masked = Patch(label="masked", facecolor=face, edgecolor=line, hatch=hatch)
        fig.legend(handles=[masked], loc="outside lower right")


def _mark_nan_cells(ax: Axes, values: np.ndarray, hidden: np.ndarray | None) -> None:
    """Write NaN into the cells that have no colour, which would otherwise look masked."""
    broken = np.isnan(values) if hidden is None else np.isnan(values) & ~hidden
    for row, col in np.argwhere(broken):
        ax.add_patch(Rectangle((col, row), 1, 1, facecolor="white", edgecolor=COLORS[1], linewidth=1.2))
        ax.text(col + 0.5, row + 0.5, "NaN", color=COLORS[1], ha="center", va="center", fontsize=9)


@style()
def depth_map(
    rows: Mapping[object, Sequence[float]],
    *,
    low: float,
    high: float,
    bar_label: str | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a row of cells for each stack of layers, one cell a layer, coloured on a logarithmic scale.

    On a scale that includes 1, white is 1, red is more and blue is less, symmetric in the logarithm; a scale
    that ends at 1 runs from dark to yellow. A row is as long as its stack is deep.

    Parameters
    ----------
    rows : mapping to sequence of float
        By name of the stack its values from the first layer to the last. What is not positive counts as
        very small.
    low, high : float
        Ends of the colour scale, positive. Values beyond have the colour of the end, and the colour bar an
        arrow there.
    bar_label : str, optional
        Names the colour bar, with its unit; without one there is no bar.
    """
    require(rows, "rows must hold at least one stack", "none")
    require(0 < low < high, "a logarithmic scale needs 0 < low < high", f"low={low}, high={high}")
    fig, ax = own_axes(ax, 9.2, 1.5 + 0.32 * len(rows))
    scale: dict[str, Any] = {"norm": LogNorm(low, high), "cmap": _depth_colors(low, high)}
    below = above = False
    for place, line in enumerate(map(to_array, rows.values())):
        cells = np.where(line > 0, line, np.finfo(float).tiny)
        ax.pcolormesh(np.arange(len(cells) + 1), (place, place + 0.9), cells[None], **scale)
        outline = Rectangle((0, place), len(cells), 0.9, fill=False, edgecolor="#8a8a8a", clip_on=False)
        ax.add_patch(outline)
        below, above = below or cells.min() < low, above or cells.max() > high
    longest = max(map(len, rows.values()))
    if bar_label is not None:
        extend = ("neither", "min", "max", "both")[below + 2 * above]
        fig.colorbar(
            ScalarMappable(**scale), ax=ax, label=bar_label, extend=extend, pad=0.02, format=PlainNumbers()
        )
    ax.set_yticks(np.arange(len(rows)) + 0.45, [str(name) for name in rows])
    step = next(step for step in (1, 2, 4, 8, 16, longest) if 10 * step >= longest)
    levels = np.arange(0, longest, step)
    ax.set_xticks(levels + 0.5, [str(level) for level in levels])
    ax.set(xlim=(0, longest), ylim=(len(rows), 0))
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    label_axes(ax, title, xlabel, ylabel)
    return fig, ax


def _depth_colors(low: float, high: float) -> Colormap:
    """Return the colours from low to high; of a diverging map the part that is needed, white at 1."""
    if not low < 1 < high:
        return colormaps["viridis"]
    reach = max(math.log(high), -math.log(low))
    first, last = (0.5 + 0.5 * math.log(end) / reach for end in (low, high))
    part = colormaps["RdBu_r"](np.linspace(first, last, 256))
    return LinearSegmentedColormap.from_list("part of RdBu_r", part)
