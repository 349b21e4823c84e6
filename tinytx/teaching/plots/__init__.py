"""Figures in one house style; the only package here that imports matplotlib and seaborn.

Colours are Okabe and Ito's, told apart with every common form of colour blindness; letters are large
enough for a projector; lines carry their names beside them, so that no legend has to be matched by hue.
"""

from tinytx.teaching.plots.depths import depth_map
from tinytx.teaching.plots.dials import dials
from tinytx.teaching.plots.display import png_bytes, save_figure, show
from tinytx.teaching.plots.groups import grouped_bars
from tinytx.teaching.plots.kinds import kind_map
from tinytx.teaching.plots.lines import Curve, bars, curves
from tinytx.teaching.plots.matrices import heatmap
from tinytx.teaching.plots.pieces import piece_rows
from tinytx.teaching.plots.points import Points, scatter
from tinytx.teaching.plots.rooflines import roofline
from tinytx.teaching.plots.seeds import seed_band
from tinytx.teaching.plots.shares import share_areas, share_bars
from tinytx.teaching.plots.style import COLORS, REFERENCE_COLOR, figure, style

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
