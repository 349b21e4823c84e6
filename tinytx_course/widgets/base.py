"""What every explorer is: a state that Python and the page share, a summary in words, and a picture."""

from __future__ import annotations

import base64
import html
import json
import os
from decimal import ROUND_HALF_UP, Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import traitlets

from tinytx_course.widgets.assets import module_source, page_script, style_sheet
from tinytx_course.widgets.picture import Picture

_LARGE = 32_000  # bytes
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Explorer(traitlets.HasTraits):
    """A picture that answers back: in JupyterLab, in a page without a kernel, and as a still in print.

    A subclass names its module of ``js/`` in `kind`, itself in `title`, and declares what the page shares
    with Python as traits tagged ``sync=True``: plain values travel as JSON, bytes as buffers of float32.

    Attributes
    ----------
    kind : str
        The file ``js/<kind>.js`` that answers to pointer and keys.
    title : str
        What a screen reader calls the explorer.
    shares : tuple of str
        Buffers of numbers between 0 and 1: in a page, large ones are rounded to 1/65535, which halves them.

    Notes
    -----
    Python holds the truth: whatever the page shows is computed by formulas that tests compare with those
    here. Nothing of anywidget is needed, or imported, before an explorer is shown in a notebook; without it
    the explorer shows as a picture with its summary, and `save_html` works all the same.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    shares: ClassVar[tuple[str, ...]] = ()

    def describe(self) -> str:
        """Say in words what the picture shows now; ``describe`` of the JavaScript module says the same."""
        raise NotImplementedError

    def picture(self) -> Picture:
        """Draw what shows where nothing can run: on paper, on a code host, in an untrusted notebook."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the summary."""
        return f"{self.title}. {self.describe()}"

    def shared(self) -> dict[str, Any]:
        """Return what the page knows, by name: JSON values and bytes."""
        return {name: getattr(self, name) for name in sorted(self.traits(sync=True))}

    def to_html(self) -> str:
        """Return summary, picture and state as HTML without a script.

        A page that also holds `assets.page_script` and `assets.style_sheet` brings it to life; elsewhere,
        and wherever attributes are thrown away, summary and picture remain.
        """
        values = self.shared()
        buffers = {name: value for name, value in values.items() if isinstance(value, bytes)}
        state = {name: value for name, value in values.items() if name not in buffers}
        packed = {name: self._packed(name, value) for name, value in buffers.items()}
        content = {"title": self.title, "state": state, "buffers": packed}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        attribute = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")
        picture = self.picture()
        still = (
            f'src="{picture.data_uri()}" width="{picture.width}" alt="Picture of what the text above says"'
        )
        return (
            f'<div class="tx-explorer" data-tx-kind="{self.kind}" data-tx-explorer=\'{attribute}\'>'
            '<div class="tx-still">'
            f"<p><strong>{html.escape(self.title)}.</strong> {html.escape(self.describe())}</p>"
            f"<img {still}></div></div>"
        )

    def _packed(self, name: str, value: bytes) -> dict[str, str]:
        """Return a buffer as text, with the type of its numbers."""
        kind = "float32"
        if name in self.shares and len(value) > _LARGE:
            kind = "uint16"
            value = np.rint(np.frombuffer(value, np.float32) * 65535.0).astype("<u2").tobytes()
        return {kind: base64.b64encode(value).decode()}

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page that responds with no kernel and no network; return its path.

        Parameters
        ----------
        path : str or Path
            Written aside and renamed, so that a page is never half there.
        """
        target = Path(path)
        aside = target.with_name(f".{target.name}.{os.getpid()}")
        name = html.escape(self.title)
        try:
            aside.write_text(
                '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                f'<meta name="color-scheme" content="light dark">\n<title>{name} · tinytx</title>\n'
                f"<style>\n{style_sheet([self.kind])}\n</style>\n</head>\n"
                f'<body class="tx-page">\n<main>\n<h1>{name}</h1>\n{self.to_html()}\n</main>\n'
                f'<script type="module">\n{page_script([self.kind])}\n</script>\n</body>\n</html>\n',
                encoding="utf-8",
            )
            os.replace(aside, target)
        finally:
            aside.unlink(missing_ok=True)
        return target

    @cached_property
    def widget(self) -> Any:
        """The live widget, made on first use and tied to this explorer.

        Raises
        ------
        ImportError
            Without anywidget.
        """
        shown = _widget_class(type(self))(title=self.title, **self.shared())
        for name in self.traits(sync=True):
            traitlets.link((self, name), (shown, name))
        return shown

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Offer the live view to Jupyter, and text and picture to everything else."""
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self.to_html()}
        try:
            shown = self.widget
        except ImportError:
            return bundle
        bundle[_WIDGET] = {"version_major": 2, "version_minor": 0, "model_id": shown.model_id}
        return bundle


@cache
def _widget_class(explorer: type[Explorer]) -> type:
    """Make the widget that shares the traits of an explorer; anywidget is imported here and nowhere else."""
    import anywidget

    # Values are checked by the explorer: the widget only carries them, bytes apart from JSON.
    traits: dict[str, Any] = {
        name: (traitlets.Bytes() if isinstance(trait, traitlets.Bytes) else traitlets.Any()).tag(sync=True)
        for name, trait in explorer.class_traits(sync=True).items()
    }
    traits["title"] = traitlets.Unicode().tag(sync=True)
    body = {"_esm": module_source(explorer.kind), "_css": style_sheet([explorer.kind]), **traits}
    return type(f"{explorer.__name__}Widget", (anywidget.AnyWidget,), body)


def numbers(values: Any, name: str, n_axes: int) -> np.ndarray:
    """Return a tensor, array or nested list as float32 with this many axes.

    Raises
    ------
    ValueError
        If it has another number of axes, is empty, or holds what is not finite.
    """
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.ndim != n_axes or array.size == 0:
        raise ValueError(f"{name} must have {n_axes} axes, none of them empty, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return array


def between(proposal: Any, low: float, high: float) -> Any:
    """Return a proposed value of a trait, for use in ``@traitlets.validate``.

    Raises
    ------
    ValueError
        If it lies outside ``low..high``.
    """
    if not low <= proposal.value <= high:
        raise ValueError(f"{proposal.trait.name} must lie in {low}..{high}, got {proposal.value}")
    return proposal.value


def fixed(value: float, digits: int) -> str:
    """Write a number as JavaScript's ``toFixed`` does: halves go away from zero, not to the even digit.

    Examples
    --------
    >>> fixed(0.125, 2), f"{0.125:.2f}"
    ('0.13', '0.12')
    """
    step = Decimal(1).scaleb(-digits)
    return str(Decimal(float(value) + 0.0).quantize(step, rounding=ROUND_HALF_UP))


def percent(share: float) -> str:
    """Write a share as whole percent.

    Examples
    --------
    >>> percent(0.125)
    '13%'
    """
    return f"{fixed(100 * float(share), 0)}%"


def listed(items: list) -> str:
    """Write a list of numbers, with runs drawn together.

    Examples
    --------
    >>> listed([0, 2, 3, 4, 6, 7])
    '0, 2–4, 6, 7'
    """
    parts: list[str] = []
    start = 0
    for end in range(1, len(items) + 1):
        if end < len(items) and items[end] == items[end - 1] + 1:
            continue
        run = items[start:end]
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else [str(item) for item in run]
        start = end
    return ", ".join(parts)


def grouped(digits: str | int) -> str:
    """Write a number with a comma before each group of three digits.

    Examples
    --------
    >>> grouped(1007900), grouped("35332.9")
    ('1,007,900', '35,332.9')
    """
    return f"{Decimal(digits):,f}"
