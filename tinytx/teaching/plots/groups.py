"""Bars in groups: several answers to each of several questions."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx.teaching.plots.style import COLORS, name_axes, own_axes, style

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
