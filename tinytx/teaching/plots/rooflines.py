"""A roofline: what a machine gives at best, and what was measured under it."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tinytx.teaching.plots.points import MARKS
from tinytx.teaching.plots.style import COLORS, REFERENCE_COLOR, name_axes, own_axes, style


def roofline(
    groups: Mapping[str, Mapping[str, tuple[float, float]]],
    *,
    flops: float,
    slopes: Mapping[str, float],
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw operations a second over operations for each byte, on logarithmic axes, under a roof.

    Parameters
    ----------
    groups : mapping of str to mapping of str to (float, float)
        By group and by name: operations a byte, operations a second. Groups differ in colour and mark; a name
        has the same number in all of them, and the numbers stand in a list beside the axes.
    flops : float
        The flat part of the roof: operations a second.
    slopes : mapping of str to float
        The sloping parts by name: bytes a second. The first is drawn solid, others dashed.
    title : str, optional
    ax : Axes, optional
        Draw here instead of in a new figure.

    Returns
    -------
    fig, ax : Figure, Axes

    Raises
    ------
    ValueError
        If there is no point or no slope, or a number is not positive: it has no logarithm.
    """
    places = [place for points in groups.values() for place in points.values()]
    numbers = [*(number for place in places for number in place), flops, *slopes.values()]
    if not places or not slopes or min(numbers) <= 0:
        raise ValueError(
            "a roofline needs points, slopes and positive numbers, "
            f"got {len(places)} points, {len(slopes)} slopes, smallest number {min(numbers):g}"
        )
    fig, ax = own_axes(ax, 9.2, 5.0)
    x, y = np.array(places).T
    left, right = x.min() / 2, max(x.max(), flops / min(slopes.values())) * 3
    low, high = min(y.min(), flops / 10) / 2, max(y.max(), flops) * 2.2
    names = list(dict.fromkeys(name for points in groups.values() for name in points))
    with style():
        for index, (name, bytes_a_second) in enumerate(slopes.items()):
            ridge = flops / bytes_a_second
            ax.plot(
                [left, ridge, right], [left * bytes_a_second / 1e9, flops / 1e9, flops / 1e9],
                color=REFERENCE_COLOR, linestyle="--" if index else "-", label=f"roof, {name}",
            )  # fmt: skip
        for index, (name, points) in enumerate(groups.items()):
            at = np.array(list(points.values()))
            ax.scatter(
                at[:, 0], at[:, 1] / 1e9, s=190, color=COLORS[index % len(COLORS)],
                marker=MARKS[::3][index % 2], label=name, zorder=3, alpha=0.85, linewidths=0,
            )  # fmt: skip
            for each, (intensity, rate) in points.items():
                ax.text(
                    intensity, rate / 1e9, str(names.index(each) + 1),
                    color="white", ha="center", va="center", fontsize=10, fontweight="bold", zorder=4,
                )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low / 1e9, high / 1e9))
        name_axes(ax, title, "operations for each byte moved (log scale)", "billion operations a second")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), labelspacing=0.9)
        listed = "\n".join(f"{number}  {name}" for number, name in enumerate(names, start=1))
        ax.text(1.04, 0.02, listed, transform=ax.transAxes, va="bottom", fontsize=11.5, linespacing=1.5)
    return fig, ax
