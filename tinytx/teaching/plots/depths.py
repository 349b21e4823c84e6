"""One number a layer, for stacks of several depths: rows of cells of different length."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tinytx.teaching.plots.style import name_axes, numbers_of, own_axes, style


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
    """Draw a row of cells for each stack, one cell a level, in colours on a logarithmic scale.

    Where the scale runs past 1, white is 1, red is more and blue is less, as much for a factor up as for the
    same factor down; a scale that ends at 1 goes from dark to yellow. A row ends where its stack ends.

    Parameters
    ----------
    rows : mapping to sequence of float
        By name of the stack its numbers from the lowest level to the highest, drawn downwards. What is
        not positive counts as very small.
    low, high : float
        Ends of the colour scale, positive. What lies beyond has the colour of the end, and the colour bar an
        arrow there.
    bar_label : str, optional
        Names the colour bar, with its unit; without one there is no bar.
    xlabel, ylabel, title : str
        Name the axes with their units.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes

    Raises
    ------
    ValueError
        If there is no row, or the scale is empty or not positive.
    """
    if not rows:
        raise ValueError("rows must hold at least one stack, got none")
    if not 0 < low < high:
        raise ValueError(f"a logarithmic scale needs 0 < low < high, got low={low}, high={high}")
    fig, ax = own_axes(ax, 9.2, 1.5 + 0.32 * len(rows))
    scale: dict[str, Any] = {"norm": LogNorm(low, high), "cmap": _colors(low, high)}
    below = above = False
    with style():
        for place, line in enumerate(map(numbers_of, rows.values())):
            cells = np.where(line > 0, line, np.finfo(float).tiny)
            ax.pcolormesh(np.arange(len(cells) + 1), (place, place + 0.9), cells[None], **scale)
            outline = Rectangle((0, place), len(cells), 0.9, fill=False, edgecolor="#8a8a8a", clip_on=False)
            ax.add_patch(outline)
            below, above = below or cells.min() < low, above or cells.max() > high
        longest = max(map(len, rows.values()))
        if bar_label is not None:
            extend = ("neither", "min", "max", "both")[below + 2 * above]
            fig.colorbar(ScalarMappable(**scale), ax=ax, label=bar_label, extend=extend, pad=0.02)
        ax.set_yticks(np.arange(len(rows)) + 0.45, [str(name) for name in rows])
        step = next(step for step in (1, 2, 4, 8, 16, longest) if 10 * step >= longest)
        levels = np.arange(0, longest, step)
        ax.set_xticks(levels + 0.5, [str(level) for level in levels])
        ax.set(xlim=(0, longest), ylim=(len(rows), 0))
        ax.grid(False)
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax


def _colors(low: float, high: float) -> Colormap:
    """Return the colours from low to high; of a two-sided map the part that is needed, white at 1."""
    if not low < 1 < high:
        return colormaps["viridis"]
    reach = max(math.log(high), -math.log(low))
    first, last = (0.5 + 0.5 * math.log(end) / reach for end in (low, high))
    part = colormaps["RdBu_r"](np.linspace(first, last, 256))
    return LinearSegmentedColormap.from_list("part of RdBu_r", part)
