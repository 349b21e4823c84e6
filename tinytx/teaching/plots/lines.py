"""Curves with interval bands, bars, and lines to compare them with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tinytx.teaching.plots.style import COLORS, REFERENCE_COLOR, name_axes, numbers_of, own_axes, style


@dataclass(frozen=True)
class Curve:
    """One line of :func:`curves`, with an interval band where ``low`` and ``high`` are given.

    Parameters
    ----------
    label : str
        Written beside the end of the line.
    x, y : sequence of float
        The points.
    low, high : sequence of float, optional
        The ends of an interval at each point.
    color : str, optional
        One of ``COLORS``; the next one unless told otherwise.
    dashed : bool
        Drawn dashed, for what is computed rather than learned.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    color: str | None = None
    dashed: bool = False


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Move labels apart until neighbours are at least ``gap`` apart, keeping order and mean place."""
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
    xlabel, ylabel, title : str
        Name the axes with their units.
    references : mapping of str to float, optional
        Level lines, such as the exact floor of a loss or the best reachable accuracy.
    x_log, y_log : bool
        Logarithmic axes.
    y_range : (float, float), optional
        Ends of the vertical axis.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    fig, ax = own_axes(ax, 7.6, 4.2)
    with style():
        names: list[tuple[str, float, str]] = []
        for index, line in enumerate(lines):
            color = line.color or COLORS[index % len(COLORS)]
            x, y = numbers_of(line.x), numbers_of(line.y)
            ax.plot(x, y, color=color, linestyle="--" if line.dashed else "-")
            if line.low is not None and line.high is not None:
                ax.fill_between(
                    x, numbers_of(line.low), numbers_of(line.high), color=color, alpha=0.2, linewidth=0
                )
            names.append((line.label, float(y[-1]), color))
        for label, level in (references or {}).items():
            ax.axhline(level, color=REFERENCE_COLOR, linewidth=1.6, linestyle=(0, (4, 3)))
            names.append((label, float(level), REFERENCE_COLOR))
        ax.set_xscale("log" if x_log else "linear")
        ax.set_yscale("log" if y_log else "linear")
        if y_range is not None:
            ax.set_ylim(*y_range)
        name_axes(ax, title, xlabel, ylabel)
        _name_ends(ax, names)
    return fig, ax


def _name_ends(ax: Axes, names: Sequence[tuple[str, float, str]]) -> None:
    """Write each name right of the axes at the height of its line, moved apart where they would meet."""
    ax.autoscale_view()  # otherwise the limits are only settled when the figure is drawn
    height = ax.transAxes.inverted()
    places = [float(height.transform(ax.transData.transform((1.0, y)))[1]) for _, y, _ in names]
    spread = _spread(places, gap=0.075)
    for (label, _, color), place in zip(names, spread, strict=True):
        ax.text(1.015, place, label, color=color, transform=ax.transAxes, va="center", fontsize=11.5)


def bars(
    values: Mapping[str, float],
    *,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    xlabel: str,
    ylabel: str = "",
    title: str | None = None,
    references: Mapping[str, float] | None = None,
    numbers: str = ".3g",
    color: str = COLORS[0],
    kinds: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw one lying bar a name, its value written at its end, with its interval where there is one.

    Parameters
    ----------
    values : mapping of str to float
        From top to bottom.
    intervals : mapping of str to (low, high), optional
        For any of the names.
    xlabel, ylabel, title : str
        Name the axes with their units.
    references : mapping of str to float, optional
        Upright lines, named above.
    numbers : str
        Format of the values.
    color : str
        Of all bars.
    kinds : mapping of str to str, optional
        A kind for each name: bars of one kind share a colour, which a legend explains, in place of `color`.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    fig, ax = own_axes(ax, 7.4, 1.6 + 0.45 * len(values))
    ends = {  # where the number goes: beyond bar and interval, to the left of what is negative
        name: (min if value < 0 else max)(value, *(intervals or {}).get(name, (value, value)))
        for name, value in values.items()
    }
    with style():
        names = list(values)
        shades = {kind: COLORS[i] for i, kind in enumerate(dict.fromkeys((kinds or {}).values()))}
        fill = [shades[kinds[name]] for name in names] if kinds else color
        ax.barh(names, [values[name] for name in names], color=fill, height=0.62)
        if shades:
            ax.legend(handles=[Patch(color=shade, label=kind) for kind, shade in shades.items()])
        for name, (low, high) in (intervals or {}).items():
            ax.plot([low, high], [name, name], color="#222222", linewidth=1.8, marker="|", markersize=9)
        for name in names:
            left = values[name] < 0
            ax.annotate(
                format(values[name], numbers), (ends[name], name), xytext=(-6 if left else 6, 0),
                textcoords="offset points", ha="right" if left else "left", va="center", fontsize=11,
            )  # fmt: skip
        for label, level in (references or {}).items():
            ax.axvline(level, color=REFERENCE_COLOR, linewidth=1.6, linestyle=(0, (4, 3)))
            ax.annotate(
                label, (level, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
                textcoords="offset points", ha="center", fontsize=11, color=REFERENCE_COLOR,
            )  # fmt: skip
        ax.invert_yaxis()
        ax.margins(x=0.12, y=0.5 / max(len(names), 10))
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        name_axes(ax, None, xlabel, ylabel)
        if title:
            ax.set_title(title, pad=22 if references else 8)
    return fig, ax
