"""Single points, told apart by mark as well as by colour."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx.teaching.plots.style import COLORS, REFERENCE_COLOR, name_axes, numbers_of, own_axes, style

MARKS = ("o", "^", "s", "D", "v", "P")


@dataclass(frozen=True)
class Points:
    """One kind of points of :func:`scatter`.

    Parameters
    ----------
    label : str
        Stands in the legend.
    x, y : sequence of float
        Where they lie.
    color : str, optional
        One of ``COLORS``; the next one unless told otherwise.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    color: str | None = None


def scatter(
    groups: Iterable[Points],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    diagonal: str | None = None,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    size: float = 26.0,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw points, half transparent so that a crowd looks darker than a single one.

    Parameters
    ----------
    groups : iterable of Points
        In the order of their colours and marks; later ones lie on top.
    xlabel, ylabel, title : str
        Name the axes with their units.
    diagonal : str, optional
        Name of the line on which x equals y; without one there is no line.
    x_range, y_range : (float, float), optional
        Ends of the axes.
    size : float
        Of a mark, in square points.
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes
    """
    fig, ax = own_axes(ax, 7.0, 5.0)
    with style():
        for index, group in enumerate(groups):
            ax.scatter(
                numbers_of(group.x), numbers_of(group.y), s=size, alpha=0.45, linewidths=0,
                color=group.color or COLORS[index % len(COLORS)],
                marker=MARKS[index % len(MARKS)], label=group.label,
            )  # fmt: skip
        if x_range is not None:
            ax.set_xlim(*x_range)
        if y_range is not None:
            ax.set_ylim(*y_range)
        if diagonal is not None:
            ax.axline(
                (0, 0), slope=1, color=REFERENCE_COLOR, linewidth=1.6, linestyle=(0, (4, 3)), label=diagonal
            )
        name_axes(ax, title, xlabel, ylabel)
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1)
    return fig, ax
