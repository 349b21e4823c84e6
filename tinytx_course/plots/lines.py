"""Curves with interval bands, and scattered points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx_course.plots.style import (
    COLORS,
    REFERENCE_LINE,
    PlainNumbers,
    label_axes,
    own_axes,
    style,
    to_array,
)

MARKERS = ("o", "^", "s", "D", "v", "P")


@dataclass(frozen=True)
class Curve:
    """One line of :func:`curves`, with an interval band where ``low`` and ``high`` are given.

    The label is written at its right end. The colour is by default the next of ``COLORS``; what is computed
    rather than learned is drawn dashed.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    color: str | None = None
    dashed: bool = False


@style()
def curves(
    lines: Iterable[Curve],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    references: Mapping[str, float] | None = None,
    x_log: bool = False,
    y_log: bool = False,
    y_range: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw lines with interval bands and level reference lines, each named at its right end.

    Parameters
    ----------
    lines : iterable of Curve
        In the order of their colours.
    references : mapping of str to float, optional
        Level lines, such as the exact entropy bound of a loss or the best reachable accuracy.
    x_log, y_log : bool
        Logarithmic axes.
    y_range : (float, float), optional
        Ends of the vertical axis.
    """
    fig, ax = own_axes(ax, 7.6, 4.2)
    names: list[tuple[str, float, str]] = []
    for index, line in enumerate(lines):
        color = line.color or COLORS[index % len(COLORS)]
        x, y = to_array(line.x), to_array(line.y)
        ax.plot(x, y, color=color, linestyle="--" if line.dashed else "-")
        if line.low is not None and line.high is not None:
            ax.fill_between(x, to_array(line.low), to_array(line.high), color=color, alpha=0.2, linewidth=0)
        names.append((line.label, float(y[-1]), color))
    for label, level in (references or {}).items():
        ax.axhline(level, **REFERENCE_LINE)
        names.append((label, float(level), REFERENCE_LINE["color"]))
    ax.set_xscale("log" if x_log else "linear")
    ax.set_yscale("log" if y_log else "linear")
    for axis in [ax.xaxis] * x_log + [ax.yaxis] * y_log:
        axis.set_major_formatter(PlainNumbers())
        axis.set_minor_formatter(PlainNumbers(minor_thresholds=(1, 0.4)))
    if y_range is not None:
        ax.set_ylim(*y_range)
    label_axes(ax, title, xlabel, ylabel)
    _name_ends(ax, names)
    return fig, ax


def _name_ends(ax: Axes, names: Sequence[tuple[str, float, str]]) -> None:
    """Write each name right of the axes at the height of its line, moved apart where names would overlap."""
    names = [named for named in names if named[0]]
    ax.autoscale_view()  # otherwise the limits are only settled when the figure is drawn
    height = ax.transAxes.inverted()
    places = [float(height.transform(ax.transData.transform((1.0, y)))[1]) for _, y, _ in names]
    spread = _spread(places, gap=0.075)
    moved = [abs(place - end) > 0.02 for place, end in zip(spread, places, strict=True)]
    left = 1.05 if any(moved) else 1.015
    for (label, _, color), place, end, is_moved in zip(names, spread, places, moved, strict=True):
        ax.text(left, place, label, color=color, transform=ax.transAxes, va="center", fontsize=11.5)
        if is_moved:  # a thin line leads from the end of its line to the name
            ax.plot([1.0, left - 0.008], [end, place], color=color, transform=ax.transAxes, clip_on=False,
                    linewidth=0.8, scalex=False, scaley=False)  # fmt: skip


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Move labels until neighbours are at least ``gap`` apart; order and mean position stay."""
    order = np.argsort(wanted, kind="stable")
    groups: list[list[float]] = []  # each: [centre, number of labels in it]
    for place in (float(wanted[i]) for i in order):
        groups.append([place, 1])
        while len(groups) > 1:
            (centre, n), (next_centre, m) = groups[-2:]
            if centre + gap * n / 2 <= next_centre - gap * m / 2:
                break
            groups[-2:] = [[(centre * n + next_centre * m) / (n + m), n + m]]
    spread = [centre + gap * (i - (n - 1) / 2) for centre, n in groups for i in range(int(n))]
    placed = [0.0] * len(spread)
    for place, i in zip(spread, order, strict=True):
        placed[int(i)] = place
    return placed


def seed_band(label: str, runs, *, every: int = 1, color: str | None = None, dashed: bool = False) -> Curve:
    """Return the mean of runs as a curve, with a band from the lowest to the highest of them.

    Parameters
    ----------
    runs : Tensor, array or nested lists of shape (n_seeds, n_steps)
        One row a seed, such as the loss of each step, from step 1.
    every : int
        Take the mean over windows of so many steps first; an incomplete last window is not shown.
    color, dashed
        As in `Curve`.

    Returns
    -------
    Curve
        Each point lies at the last step of its window.
    """
    values = to_array(runs)
    if values.ndim != 2 or values.shape[1] < every:
        raise ValueError(f"runs must have shape (n_seeds, n_steps >= {every}), got {values.shape}")
    n_windows = values.shape[1] // every
    windows = values[:, : n_windows * every].reshape(len(values), n_windows, every).mean(axis=2)
    steps: Sequence[float] = range(every, n_windows * every + 1, every)
    return Curve(
        label, steps, windows.mean(axis=0), windows.min(axis=0), windows.max(axis=0),
        color=color, dashed=dashed,
    )  # fmt: skip


@dataclass(frozen=True)
class Points:
    """One kind of points of :func:`scatter`, which the legend names."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


@style()
def scatter(
    groups: Iterable[Points],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    size: float = 26.0,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw points, half transparent so that a crowd looks darker than a single one.

    Parameters
    ----------
    groups : iterable of Points
        In the order of their colours and markers; later ones lie on top.
    size : float
        Of a marker, in square points.
    """
    fig, ax = own_axes(ax, 7.0, 5.0)
    for index, group in enumerate(groups):
        ax.scatter(
            to_array(group.x), to_array(group.y), s=size, alpha=0.45, linewidths=0,
            color=COLORS[index % len(COLORS)], marker=MARKERS[index % len(MARKERS)], label=group.label,
        )  # fmt: skip
    label_axes(ax, title, xlabel, ylabel)
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    return fig, ax
