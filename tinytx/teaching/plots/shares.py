"""Parts of a whole: stacked areas along an axis, stacked bars by name."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx.teaching.plots.style import COLORS, name_axes, numbers_of, own_axes, style


def share_areas(
    x: Sequence[float],
    parts: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    x_log: bool = False,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw how a whole is made up of its parts, in percent, as areas on top of each other.

    Parameters
    ----------
    x : sequence of float
        Where the parts are known.
    parts : mapping of str to sequence of float
        Sizes in any unit, not negative, from bottom to top; each is named right of the axes.
    xlabel, ylabel, title : str
        Name the axes with their units.
    x_log : bool
        Logarithmic axis.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    fig, ax = own_axes(ax, 7.6, 4.2)
    sizes = np.stack([numbers_of(values) for values in parts.values()])
    shares = 100 * sizes / sizes.sum(axis=0)
    with style():
        colors = [COLORS[index % len(COLORS)] for index in range(len(parts))]
        ax.stackplot(numbers_of(x), shares, colors=colors, alpha=0.85, edgecolor="white", linewidth=0.8)
        ax.set_xscale("log" if x_log else "linear")
        ax.set(xlim=(min(x), max(x)), ylim=(0, 100))
        ends = np.cumsum(shares[:, -1]) - shares[:, -1] / 2
        height, lowest = 6.5, -np.inf  # labels are kept apart, from bottom to top
        for name, color, end in zip(parts, colors, ends, strict=True):
            lowest = max(end, lowest + height)
            ax.text(
                1.015, lowest / 100, name, color=color, transform=ax.transAxes, va="center", fontsize=11.5
            )
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax


def share_bars(
    wholes: Mapping[str, Mapping[str, float]],
    *,
    xlabel: str,
    ylabel: str = "",
    title: str | None = None,
    notes: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw one lying bar of 100 percent a name, divided into its parts.

    Parameters
    ----------
    wholes : mapping of str to mapping of str to float
        From top to bottom; parts in any unit, not negative, the same names in each.
    xlabel, ylabel, title : str
        Name the axes with their units.
    notes : mapping of str to str, optional
        Written right of the bars, such as the size of the whole.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    fig, ax = own_axes(ax, 8.4, 1.9 + 0.36 * len(wholes))
    names = list(wholes)
    parts = list(dict.fromkeys(part for whole in wholes.values() for part in whole))
    totals = np.array([sum(whole.values()) for whole in wholes.values()])
    with style():
        left = np.zeros(len(names))
        for index, part in enumerate(parts):
            shares = 100 * np.array([whole.get(part, 0.0) for whole in wholes.values()]) / totals
            color = COLORS[index % len(COLORS)]
            ax.barh(names, shares, left=left, color=color, height=0.68, label=part, alpha=0.85)
            left += shares
        for name, note in (notes or {}).items():
            ax.annotate(
                note, (100, name), xytext=(6, 0), textcoords="offset points", va="center", fontsize=11
            )
        ax.invert_yaxis()
        ax.set_xlim(0, 100)
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        fig.legend(loc="outside lower center", ncols=min(5, len(parts)))
        name_axes(ax, title, xlabel, ylabel)
    return fig, ax
