"""Showing a figure with its alt text, and keeping it as a file of the course."""

import base64
import io
import os
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from tinytx.teaching.names import check_plain_name
from tinytx.teaching.plots.style import style


def png_bytes(fig: Figure) -> bytes:
    """Return the figure as PNG, without date or version, so that equal figures are equal bytes.

    Its colours are brought down to 256, which the eye does not see and which makes it about three times
    smaller: a notebook holds many.
    """
    drawn, stream = io.BytesIO(), io.BytesIO()
    with style():
        fig.savefig(drawn, format="png", metadata={"Software": None})
    picture = Image.open(drawn).convert("RGB")
    few_colours = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few_colours.save(stream, format="png", optimize=True, dpi=picture.info.get("dpi"))
    return stream.getvalue()


def show(fig: Figure, alt: str, name: str | None = None) -> None:
    """Show a figure in a notebook together with its alt text, which exported pages keep.

    Parameters
    ----------
    fig : Figure
        From one of the functions here.
    alt : str
        What somebody who cannot see the picture must know: what is drawn and what the eye should find.
    name : str, optional
        Such as ``02_causal_mask``; with a name the figure is one of the course's, see :func:`save_figure`.

    Raises
    ------
    ValueError
        If the alt text is empty.
    """
    from IPython.display import display

    if not alt.strip():
        raise ValueError("alt must say what the figure shows, got an empty text")
    alt = " ".join(alt.split())
    bundle = {"image/png": base64.b64encode(png_bytes(fig)).decode(), "text/plain": f"[figure: {alt}]"}
    display(bundle, raw=True, metadata={"image/png": {"alt": alt}})
    if name is not None:
        save_figure(fig, name, alt)


def save_figure(fig: Figure, name: str, alt: str = "") -> None:
    """Write ``name.svg`` and ``name.png`` to the folder in TINYTX_FIGURES; without that variable do nothing.

    Only `make publish` sets it, so that running a notebook never changes the checkout.

    Parameters
    ----------
    fig : Figure
        From one of the functions here.
    name : str
        File name without ending.
    alt : str
        Kept in the SVG as its description.
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
