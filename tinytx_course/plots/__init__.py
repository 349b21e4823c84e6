"""Figures in one house style; no other package here imports matplotlib or seaborn at module level.

Colours are Okabe and Ito's, which differ for readers with any common form of colour blindness; letters are
large enough for a projector; lines are labelled at their ends, so that no legend has to be matched by hue.

Every function that draws takes ``xlabel``, ``ylabel`` and ``title`` (with units) and ``ax`` (axes to draw
into in place of a new figure), and returns the figure and its axes.
"""

from __future__ import annotations

from tinytx_course.plots.bars import bars, share_bars
from tinytx_course.plots.diagrams.diagram import DIAGRAMS, diagram
from tinytx_course.plots.lines import Curve, Points, curves, scatter, seed_band
from tinytx_course.plots.matrices import depth_map, heatmap
from tinytx_course.plots.style import COLORS, REFERENCE_COLOR, figure, png_bytes, save_figure, show, style

__all__ = [
    "COLORS",
    "DIAGRAMS",
    "REFERENCE_COLOR",
    "Curve",
    "Points",
    "bars",
    "curves",
    "depth_map",
    "diagram",
    "figure",
    "heatmap",
    "png_bytes",
    "save_figure",
    "scatter",
    "seed_band",
    "share_bars",
    "show",
    "style",
]
