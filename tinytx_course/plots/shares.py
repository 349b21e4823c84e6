"""Angles as the hands of clocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from tinytx_course.plots.style import COLORS, name_axes, numbers_of, own_axes, style


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


FULL = 0.82  # of the space of a group
GAP, BAR = 0.14, 0.25  # inches between groups, and for a bar with its number


def grouped_bars(
    series: Mapping[str, Mapping[str, float]],
    *,
    xlabel: str,
    ylabel: str = "",
    title: str | None = None,
    numbers: str = ".2f",
    colors: Sequence[str] = COLORS,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw lying bars in groups, one bar a series in each, their values written at their ends.

    Parameters
    ----------
    series : mapping of str to mapping of str to float
        By name of the series its values by group. All series must have the groups of the first, which are
        drawn from top to bottom in its order.
    xlabel, ylabel, title : str
        Name the axes with their units.
    numbers : str
        Format of the values.
    colors : sequence of str
        One a series.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes

    Raises
    ------
    ValueError
        If there is no series, or the series have different groups.
    """
    if not series:
        raise ValueError("series must hold at least one series, got none")
    groups = list(next(iter(series.values())))
    for name, values in series.items():
        if set(values) != set(groups):
            raise ValueError(f"all series must have the groups {groups}, got {list(values)} for {name!r}")
    fig, ax = own_axes(ax, 7.4, 1.5 + (GAP + BAR * len(series)) * len(groups))
    height = FULL / len(series)
    with style():
        for number, (name, values) in enumerate(series.items()):
            places = [row + (number + 0.5) * height - FULL / 2 for row in range(len(groups))]
            widths = [values[group] for group in groups]
            ax.barh(places, widths, height=0.92 * height, color=colors[number % len(colors)], label=name)
            for place, width in zip(places, widths, strict=True):
                ax.annotate(
                    format(width, numbers), (width, place), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=10,
                )  # fmt: skip
        ax.set_yticks(range(len(groups)), groups)
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        name_axes(ax, title, xlabel, ylabel)
        ax.legend(loc="lower right")
    return fig, ax


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
