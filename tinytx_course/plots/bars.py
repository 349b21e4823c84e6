"""Bars with their values, and parts of a whole."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx_course.plots.style import COLORS, REFERENCE_LINE, label_axes, note, own_axes, style


def _rows_downwards(ax: Axes) -> None:
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


@style()
def bars(
    values: Mapping[str, float],
    *,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    xlabel: str,
    ylabel: str = "",
    title: str | None = None,
    references: Mapping[str, float] | None = None,
    numbers: str = ".3g",
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw one horizontal bar a name, its value written at its end, with its interval where there is one.

    Parameters
    ----------
    values : mapping of str to float
        From top to bottom.
    intervals : mapping of str to (low, high), optional
        For any of the names.
    references : mapping of str to float, optional
        Vertical lines, named above.
    numbers : str
        Format of the values.
    """
    fig, ax = own_axes(ax, 7.4, 1.6 + 0.45 * len(values))
    ends = {  # where the number goes: beyond bar and interval, to the left of what is negative
        name: (min if value < 0 else max)(value, *(intervals or {}).get(name, (value, value)))
        for name, value in values.items()
    }
    names = list(values)
    ax.barh(names, list(values.values()), color=COLORS[0], height=0.62)
    for name, (low, high) in (intervals or {}).items():
        ax.plot([low, high], [name, name], color="#222222", linewidth=1.8, marker="|", markersize=9)
    for name in names:
        left = values[name] < 0
        words, side = format(values[name], numbers), "right" if left else "left"
        note(ax, words, (ends[name], name), -6 if left else 6, ha=side, fontsize=11)
    for label, level in (references or {}).items():
        ax.axvline(level, **REFERENCE_LINE)
        ax.annotate(
            label, (level, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
            textcoords="offset points", ha="center", fontsize=11, color=REFERENCE_LINE["color"],
        )  # fmt: skip
    _rows_downwards(ax)
    ax.margins(x=0.16, y=0.5 / max(len(names), 10))
    label_axes(ax, None, xlabel, ylabel)
    if title:
        ax.set_title(title, pad=22 if references else 8)
    return fig, ax


@style()
def share_bars(
    wholes: Mapping[str, Mapping[str, float]],
    *,
    xlabel: str,
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw one horizontal bar of 100 percent a name, divided into its parts.

    Parameters
    ----------
    wholes : mapping of str to mapping of str to float
        From top to bottom; parts in any unit, not negative, the same names in each.
    """
    fig, ax = own_axes(ax, 8.4, 1.9 + 0.36 * len(wholes))
    names = list(wholes)
    parts = list(dict.fromkeys(part for whole in wholes.values() for part in whole))
    totals = np.array([sum(whole.values()) for whole in wholes.values()])
    left = np.zeros(len(names))
    for index, part in enumerate(parts):
        shares = 100 * np.array([whole.get(part, 0.0) for whole in wholes.values()]) / totals
        color = COLORS[index % len(COLORS)]
        ax.barh(names, shares, left=left, color=color, height=0.68, label=part, alpha=0.85)
        left += shares
    _rows_downwards(ax)
    ax.set_xlim(0, 100)
    fig.legend(loc="outside lower center", ncols=min(5, len(parts)))
    label_axes(ax, title, xlabel, ylabel)
    return fig, ax
