"""Figures in one house style; the only package here that imports matplotlib and seaborn.

Colours are Okabe and Ito's, told apart with every common form of colour blindness; letters are large
enough for a projector; lines carry their names beside them, so that no legend has to be matched by hue.
"""

from __future__ import annotations

from tinytx_course.plots.lines import Curve, Points, bars, curves, roofline, scatter, seed_band
from tinytx_course.plots.matrices import depth_map, heatmap, kind_map, piece_rows
from tinytx_course.plots.shares import dials, grouped_bars, share_areas, share_bars
from tinytx_course.plots.style import COLORS, REFERENCE_COLOR, figure, png_bytes, save_figure, show, style

__all__ = [
    "COLORS",
    "REFERENCE_COLOR",
    "Curve",
    "Points",
    "bars",
    "curves",
    "depth_map",
    "dials",
    "figure",
    "grouped_bars",
    "heatmap",
    "kind_map",
    "piece_rows",
    "png_bytes",
    "roofline",
    "save_figure",
    "scatter",
    "seed_band",
    "share_areas",
    "share_bars",
    "show",
    "style",
]
