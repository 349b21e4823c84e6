"""Cells of a few kinds, each kind with its colour and its name."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tinytx.teaching.plots.matrices import heatmap
from tinytx.teaching.plots.style import COLORS, numbers_of, style

#: What most cells are, then colours that differ in lightness too.
KIND_COLORS = ("#f4f4f4", COLORS[0], COLORS[4], COLORS[5], COLORS[1], COLORS[2])


def kind_map(
    cells,
    kinds: Sequence[str] | Mapping[str, str],
    *,
    row_labels: Sequence[str] | None = None,
    col_labels: Sequence[str] | None = None,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> tuple[Figure, Axes]:
    """Draw a table of kinds as coloured cells, with a legend that names the kinds.

    Parameters
    ----------
    cells : Tensor or array of int, shape (rows, columns)
        In each cell the index of its kind.
    kinds : sequence of str, or mapping of str to str
        Names of the kinds, in the order of their indices, with colours of one's own or those of the house;
        the first of these is a pale ground.
    row_labels, col_labels : sequence of str, optional
        Such as the words of a text.
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
        If a cell is no index of a kind, or there are more kinds than colours.
    """
    values = numbers_of(cells)
    if not isinstance(kinds, Mapping):
        if len(kinds) > len(KIND_COLORS):
            raise ValueError(f"kinds without colours must be at most {len(KIND_COLORS)}, got {len(kinds)}")
        kinds = dict(zip(kinds, KIND_COLORS, strict=False))
    if values.size and not set(values.flat) <= set(range(len(kinds))):
        raise ValueError(f"cells must hold 0 to {len(kinds) - 1}, got {sorted(set(values.flat))}")
    fig, ax = heatmap(
        values,
        row_labels=row_labels,
        col_labels=col_labels,
        xlabel=xlabel,
        ylabel=ylabel,
        title=title,
        low=-0.5,
        high=len(kinds) - 0.5,
        cmap=ListedColormap(list(kinds.values())),
        ax=ax,
    )
    with style():
        patches = [Patch(facecolor=color, edgecolor="#8a8a8a", label=name) for name, color in kinds.items()]
        fig.legend(handles=patches, loc="outside lower center", ncols=min(4, len(patches)))
    return fig, ax
