"""The house style, empty figures, and showing a figure with its alt text."""

from __future__ import annotations

import base64
import io
import os
from contextlib import _GeneratorContextManager
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from PIL import Image

from tinytx_course.results import check_plain_name, tables_of

#: Okabe and Ito's palette without the yellow, which fades on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
REFERENCE_COLOR = "#555555"
REFERENCE_LINE: dict[str, Any] = {"color": REFERENCE_COLOR, "linewidth": 1.6, "linestyle": (0, (4, 3))}
_STYLE = {
    "font.size": 12,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 14,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.2,
    "hatch.linewidth": 0.8,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "text.color": "#222222",
    "axes.labelcolor": "#222222",
    "savefig.dpi": 120,
    "svg.hashsalt": "tinytx",
    "svg.fonttype": "none",  # letters stay letters: small, and in the colours of a page
    "axes.prop_cycle": cycler(color=COLORS),
}


class PlainNumbers(LogFormatter):
    """Names the ticks of a logarithmic axis without exponents, which are too small to read on a phone."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        written = f"{x:,.0f}" if 1 <= x < 1e9 else f"{x:g}"
        return written if super().__call__(x, pos) else ""


def style() -> _GeneratorContextManager[None]:
    """Return the house style as a context or a decorator, for a figure that none of these functions draws."""
    return mpl.rc_context(_STYLE)  # type: ignore[arg-type]


def figure(
    n_rows: int = 1,
    n_cols: int = 1,
    *,
    width: float = 7.0,
    height: float = 4.0,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, Any]:
    """Make an empty figure in the house style.

    Parameters
    ----------
    n_rows, n_cols : int
        Number of panels.
    width, height : float
        Of the whole figure, in inches.
    sharex, sharey : bool
        True for panels that are to be compared.

    Returns
    -------
    fig : Figure
        Belongs to no window: it is shown by :func:`show` or as the last expression of a cell, never twice.
    axes : Axes or ndarray of Axes of shape (n_rows, n_cols), without axes of length one
    """
    with style():
        fig = Figure(figsize=(width, height), layout="constrained")
        axes = fig.subplots(n_rows, n_cols, sharex=sharex, sharey=sharey)
    return fig, axes


def to_array(values) -> np.ndarray:
    """Return a float array from a tensor on any device, an array or nested lists."""
    if hasattr(values, "detach"):
        values = values.detach().to("cpu").float().numpy()
    return np.asarray(values, dtype=float)


def own_axes(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """Return the axes given, or those of a new figure of this size."""
    if ax is None:
        return figure(width=width, height=height)
    return ax.get_figure(root=True), ax  # type: ignore[return-value]


def label_axes(ax: Axes, title: str | None, xlabel: str, ylabel: str) -> None:
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        ax.set_title(title)


def note(ax: Axes, words: str, place: tuple, across: float = 6, **look: Any) -> None:
    """Write words next to a place, so many points to its right."""
    ax.annotate(words, place, xytext=(across, 0), textcoords="offset points", va="center", **look)


def png_bytes(fig: Figure) -> bytes:
    """Return the figure as PNG, without date or version, so that equal figures are equal bytes.

    Its 256 colours look like the full ones and make it about three times smaller: a notebook holds many.
    """
    drawn, stream = io.BytesIO(), io.BytesIO()
    with style():
        fig.savefig(drawn, format="png", metadata={"Software": None})
    picture = Image.open(drawn).convert("RGB")
    few_colours = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few_colours.save(stream, format="png", optimize=True, dpi=picture.info.get("dpi"))
    return stream.getvalue()


def captions() -> dict[str, dict[str, str]]:
    """Caption and alt text of each figure of the lessons, by its name."""
    return tables_of("plots/captions.toml")


def show(fig: Figure, name: str, alt: str | None = None) -> None:
    """Show a figure in a notebook with its caption and alt text, which exported pages have too.

    Parameters
    ----------
    fig : Figure
    name : str
        Such as ``02_wrong_masks``: a row of ``plots/captions.toml``, which says what is drawn, and what
        there is to see for whoever cannot see the picture. The figure is also written to a file, see
        `save_figure`.
    alt : str, optional
        In place of that row, for a figure of your own.

    Raises
    ------
    ValueError
        If there is neither a row nor a text.
    """
    from IPython.display import display

    texts = captions().get(name, {}) if alt is None else {"alt": " ".join(alt.split())}
    if not texts.get("alt"):
        raise ValueError(f"a figure must have an alt text, here or in captions.toml, got none for {name!r}")
    bundle = {
        "image/png": base64.b64encode(png_bytes(fig)).decode(),
        "text/plain": f"[figure: {texts['alt']}]",
    }
    display(bundle, raw=True, metadata={"image/png": texts})
    if caption := texts.get("caption"):
        shown = {"text/html": f'<p class="caption">{escape(caption)}</p>', "text/plain": caption}
        display(shown, raw=True)
    save_figure(fig, name, texts["alt"])


def save_figure(fig: Figure, name: str, alt: str = "") -> None:
    """Write ``name.svg`` and ``name.png`` to the folder in TINYTX_FIGURES; without that variable do nothing.

    Only `make publish` sets it, so that running a notebook never changes the checkout. The alt text is the
    description in the SVG.
    """
    check_plain_name(name)
    folder = os.environ.get("TINYTX_FIGURES")
    if not folder:
        return
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.png").write_bytes(png_bytes(fig))
    with style():
        fig.savefig(
            target / f"{name}.svg", metadata={"Date": None, "Creator": None, "Description": alt or None}
        )
