"""What every explorer is: a widget whose state Python and the page share, and a text where no script runs."""

from __future__ import annotations

import base64
import html
import json
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from tinytx.settings import require
from tinytx_course.widgets.assets import embedded_module, module_source, style_sheet

if "google.colab" in sys.modules:  # Colab shows widgets of others only where a notebook allows them
    from google.colab import output

    output.enable_custom_widget_manager()

_LARGE = 32_000  # bytes
_WIDGET = "application/vnd.jupyter.widget-view+json"
ELSEWHERE = "It responds where scripts run: in JupyterLab and on the exported page."


class Explorer(anywidget.AnyWidget):
    """An interactive picture: in JupyterLab with a kernel, in an exported page without one.

    A subclass declares the state that the page shares with Python as traits tagged ``sync=True``: plain
    values travel as JSON, bytes as buffers of float32. Numbers that have bounds are `bounded`.

    Attributes
    ----------
    kind : str
        The module ``js/<kind>.js``.
    shares : tuple of str
        Buffers of numbers between 0 and 1: in a page, large ones are rounded to 1/65535, which halves them.
    title : str
        What a screen reader calls the explorer.
    """

    kind: ClassVar[str]
    shares: ClassVar[tuple[str, ...]] = ()
    _bounds: ClassVar[Any]

    title = traitlets.Unicode().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Attach style and bounds. (AnyWidget makes a nameless subclass of each instance: it has no kind.)"""
        if "kind" in cls.__dict__:
            cls._css = style_sheet([cls.kind])
            if names := [name for name, one in vars(cls).items() if "bounds" in getattr(one, "metadata", ())]:
                cls._bounds = traitlets.validate(*names)(_check_bounds)
        super().__init_subclass__(**kwargs)

    def __init__(self, **state: Any) -> None:
        self._esm = module_source(self.kind)  # not before it is needed: it may hold a whole model
        super().__init__(**state)

    def summary(self) -> str:
        """Return a sentence on what the explorer shows, and one on its present state."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.title}. {self.summary()}"

    def state(self) -> dict[str, Any]:
        """Return what the page knows, by name: JSON values and bytes."""
        names = self.trait_names(sync=True)
        own = (name for name in sorted(names) if name[0] != "_" and not hasattr(anywidget.AnyWidget, name))
        return {name: getattr(self, name) for name in own}

    def to_html(self) -> str:
        """Return the text and the state as HTML without a script.

        A page that also holds `assets.page_script` and `assets.style_sheet` brings it to life. Elsewhere, as
        on a code host that throws attributes away, the text remains.
        """
        attribute = self._content().replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")
        return (
            f'<div class="tx-explorer" data-tx-kind="{self.kind}" data-tx-explorer=\'{attribute}\'>'
            f"{self.still()}</div>"
        )

    def to_module(self) -> str:
        """Return the explorer as one ES module, for a page of somebody else; `examples/embed` has three.

        Its default export has ``render({ el })``, as anywidget's modules; style and state are in it, and it
        asks for no other file.
        """
        return embedded_module(self.kind, self._content())

    def _content(self) -> str:
        """Return the state as JSON, buffers as text."""
        values = self.state()
        buffers = {key: self._packed(key, value) for key, value in values.items() if isinstance(value, bytes)}
        plain = {name: value for name, value in values.items() if name not in buffers}
        content = {"state": plain, "buffers": buffers}
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def still(self) -> str:
        """Return what is shown where no script runs, of the class ``tx-still``."""
        title = html.escape(self.title) + ("" if self.title.endswith("?") else ".")
        return f'<p class="tx-still"><strong>{title}</strong> {html.escape(self.summary())} {ELSEWHERE}</p>'

    def _packed(self, name: str, value: bytes) -> dict[str, str]:
        """Return a buffer as text, with the type of its numbers."""
        kind = "float32"
        if name in self.shares and len(value) > _LARGE:
            kind = "uint16"
            value = np.rint(np.frombuffer(value, np.float32) * 65535.0).astype("<u2").tobytes()
        return {kind: base64.b64encode(value).decode()}

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Offer the live view to Jupyter, and text and state to everything else; no metadata."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"text/plain": repr(self), "text/html": self.to_html(), _WIDGET: view}, {}


def numbers(values: Any, name: str, n_axes: int) -> np.ndarray:
    """Return a tensor, array or nested list as finite float32 with this many axes, none of them empty."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.ndim != n_axes or array.size == 0:
        raise ValueError(f"{name} must have {n_axes} axes, none of them empty, got shape {array.shape}")
    require(np.isfinite(array).all(), f"{name} must be finite", "NaN or infinity")
    return array


def mask_cells(mask: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return a mask as a bool array of this shape, True = may attend; without one everything is open."""
    cells = np.asarray(True if mask is None else mask.cpu() if hasattr(mask, "cpu") else mask)
    if cells.dtype != bool:
        raise TypeError(f"mask must be bool (True = may attend), got {cells.dtype}")
    try:
        return np.broadcast_to(cells.reshape(cells.shape[-2:]), shape)  # a batch may hold one mask
    except ValueError:
        raise ValueError(f"mask must broadcast to {shape}, got shape {cells.shape}") from None


def bounded(default: float, low: float, high: float | Callable[[Any], float]) -> Any:
    """Declare a number that the page shares with Python; `high` may depend on the explorer's other traits."""
    number: Any = traitlets.Int if isinstance(default, int) else traitlets.Float
    return number(default).tag(sync=True, bounds=(low, high))


def between(proposal: Any, low: float, high: float) -> Any:
    """Return a proposed value of a trait, for use in ``@traitlets.validate``, if it is in ``low..high``."""
    require(low <= proposal.value <= high, f"{proposal.trait.name} must lie in {low}..{high}", proposal.value)
    return proposal.value


def _check_bounds(explorer: Explorer, proposal: Any) -> Any:
    low, high = proposal.trait.metadata["bounds"]
    return between(proposal, low, high(explorer) if callable(high) else high)
