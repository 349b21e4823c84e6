"""One number a layer, for stacks of several depths: rows of cells of different length."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from tinytx.teaching.plots.style import name_axes, numbers_of, own_axes, style


def depth_map(
    rows: Mapping[object, Sequence[float]],
    *,
    low: float,
    high: float,
    bar_label: str,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a row of cells for each stack, one cell a level, in colours on a logarithmic scale.

    Where the scale runs past 1, white is 1, red is more and blue is less, and the scale reaches equally far
    on both sides; a scale that ends at 1 goes from dark to yellow. A row ends where its stack ends.

    Parameters
    ----------
    rows : mapping to sequence of float
        By name of the stack its numbers from the lowest level to the highest, drawn downwards. What is
        not positive counts as very small.
    low, high : float
        Ends of the colour scale, positive. What lies beyond has the colour of the end, and the colour bar an
        arrow there.
    bar_label : str
        Names the colour bar, with its unit.
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
    two_sided = low < 1 < high
    if two_sided:
        high = max(high, 1 / low)
        low = 1 / high
    lines = [numbers_of(line) for line in rows.values()]
    cells = np.ma.masked_all((len(lines), max(map(len, lines))))
    for row, line in enumerate(lines):
        cells[row, : len(line)] = np.where(line > 0, line, np.finfo(float).tiny)
    fig, ax = own_axes(ax, 9.2, 1.5 + 0.32 * len(rows))
    with style():
        mesh = ax.pcolormesh(
            cells,
            norm=LogNorm(low, high),
            cmap="RdBu_r" if two_sided else "viridis",
            edgecolors="#9a9a9a",
            linewidth=0.4,
        )
        below, above = bool((cells < low).any()), bool((cells > high).any())
        extend = {(False, False): "neither", (True, False): "min", (False, True): "max"}
        fig.colorbar(mesh, ax=ax, label=bar_label, extend=extend.get((below, above), "both"), pad=0.02)
        ax.set_yticks(np.arange(len(lines)) + 0.5, [str(name) for name in rows])
        step = max(1, -(-cells.shape[1] // 10))
        step = next(nice for nice in (1, 2, 4, 8, 16, step) if nice >= step)
        levels = np.arange(0, cells.shape[1], step)
        ax.set_xticks(levels + 0.5, [str(level) for level in levels])
        ax.invert_yaxis()
        ax.grid(False)
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax
