"""One diagram with its caption and alt text, as Jupyter and the pages show it, and the list of all."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from tinytx_course.plots.diagrams import attending, models, reading
from tinytx_course.plots.diagrams.svg import Drawn, Panel, style_sheet
from tinytx_course.results import nearest, tables_of

GAP, MARGIN = 26, 14  # in the file that holds all panels in a row
SMALLEST, LARGEST = 0.82, 1.25  # so far may a panel shrink, or grow, from the size it is drawn for


@dataclass(frozen=True)
class Diagram:
    """A drawing that Jupyter and the pages show with its caption.

    Attributes
    ----------
    name : str
    lesson : int
        The number of the lesson it belongs to.
    caption : str
        One sentence, to be numbered.
    alt : str
        What is drawn, for whoever cannot see it.
    panels : tuple of Panel
        In a row where there is room, else below each other.
    """

    name: str
    lesson: int
    caption: str
    alt: str
    panels: tuple[Panel, ...]

    def __repr__(self) -> str:
        return f"[diagram: {self.alt}]"

    def to_svg(self) -> str:
        """Return the diagram as a file of its own, light or dark as the reader prefers."""
        width = sum(panel.width for panel in self.panels) + GAP * (len(self.panels) - 1) + 2 * MARGIN
        height = max(panel.height for panel in self.panels) + 2 * MARGIN
        left, inner = float(MARGIN), []
        for panel in self.panels:
            place = f'x="{left:g}" y="{MARGIN}" width="{panel.width:g}" height="{panel.height:g}"'
            inner.append(panel.svg(place))
            left += panel.width + GAP
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="txd" role="img" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}"><title>{escape(self.caption)}</title>'
            f"<desc>{escape(self.alt)}</desc><style>{escape(style_sheet(), quote=False)}</style>"
            f'<rect class="ground" width="{width:g}" height="{height:g}" rx="12"/>{"".join(inner)}</svg>'
        )

    def to_html(self) -> str:
        """Return the diagram with its caption as HTML that needs no script and no other file.

        Where style and SVG are thrown away, as on code hosts, the picture of `to_svg` remains.
        """
        alt, file = escape(self.alt), base64.b64encode(self.to_svg().encode()).decode()
        pictures = "".join(
            panel.svg(
                f'aria-hidden="true" style="flex: {panel.width:g} 1 {SMALLEST * panel.width:.0f}px; '
                f'min-width: {SMALLEST * panel.width:.0f}px; max-width: {LARGEST * panel.width:.0f}px"'
            )
            for panel in self.panels
        )
        return (
            f'<figure class="txd" data-diagram="{self.name}"><style>{style_sheet()}</style>'
            f'<div class="txd-scroll" tabindex="0" data-lm-suppress-shortcuts="true" role="group" '
            'aria-label="Diagram">'
            f'<div class="txd-panels" role="img" aria-label="{alt}">{pictures}</div></div>'
            f'<img class="txd-still" alt="{alt}" src="data:image/svg+xml;base64,{file}">'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """Offer the drawing to Jupyter and pages, and one line of text to everything else."""
        facts = {"alt": self.alt, "caption": self.caption, "diagram": self.name}
        return {"text/html": self.to_html(), "text/plain": repr(self)}, {"text/html": facts}


#: What draws each diagram; its lesson, caption and alt text are in texts.toml.
DIAGRAMS: dict[str, Callable[[], Drawn]] = {
    "where-attention-sits": models.where_attention_sits,
    "text-to-vectors": reading.text_to_vectors,
    "three-masks": attending.three_masks,
    "split-into-heads": attending.split_into_heads,
    "block": models.block,
    "parameters": reading.parameters,
    "ids-to-logits": models.ids_to_logits,
    "swap-the-head": models.swap_the_head,
    "who-sees-what": attending.who_sees_what,
    "encoder-decoder": models.encoder_decoder,
    "paths-of-information": attending.paths_of_information,
    "old-and-new-block": models.old_and_new_block,
    "low-rank-update": models.low_rank_update,
    "dose-and-response": reading.dose_and_response,
    "probe-ablate-patch": models.probe_ablate_patch,
}


def diagram(name: str) -> Diagram:
    """Return a diagram of the course by its name; as the last expression of a cell it is shown.

    Parameters
    ----------
    name : str
        One of `DIAGRAMS`.

    Raises
    ------
    ValueError
        If there is no diagram of this name.

    Examples
    --------
    >>> diagram("blok")
    Traceback (most recent call last):
    ValueError: name must be one of where-attention-sits, ..., got 'blok'; did you mean 'block'?
    """
    if name not in DIAGRAMS:
        raise ValueError(f"name must be one of {', '.join(DIAGRAMS)}, got {name!r}{nearest(name, DIAGRAMS)}")
    texts, (panels, named) = tables_of("plots/diagrams/texts.toml")[name], DIAGRAMS[name]()
    caption, alt = (texts[kind].format(**named) for kind in ("caption", "alt"))
    return Diagram(name, texts["lesson"], caption, alt, panels)
