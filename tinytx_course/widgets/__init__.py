"""Explorers: pictures that answer back, in JupyterLab and in pages without a kernel or a network.

>>> from tinytx_course import widgets
>>> widgets.mask(["a", "b"]).describe().split('. ')[0]
'Mask (causal): 3 of 4 cells open'

attention  all heads of a model, each row a distribution
attending  attention weights with their words, from a model or from numbers
mask       who may look at whom, what softmax makes of it, and what leaks
one_query  one query through attention, step by step, and what the scale is for
chain      the arithmetic of one query, as numbers and in words
saturation random queries and keys that Python and the page draw alike
positions  sinusoidal positions as a table, as clocks, by similarity, and one shift as a rotation
shapes     one block from (B, T, D) through the heads and back, entry by entry
block_steps what one block does to shapes: code, axes, parameters
count      what a configuration learns, computes and keeps, beside a pinned one
count_state its settings as a configuration, its costs as bars
count_words large numbers in short, what changed, bars as a still
sampling   temperature, top-k, top-p and draws, beside the true distribution
drawing    the stages of sampling, and draws that Python and the page make alike
next_word  a beginning, and how a model and the world go on, word by word
continuations next words of model and world, and a tree of them for pages without a kernel
base       what every explorer is
assets     JavaScript and style as text
picture    stills, drawn without a plotting library

How to add one, here called ``dice``:

1. ``dice.py``: a subclass of `Explorer` with `kind` ``"dice"``, `title`, traits tagged ``sync=True`` (plain
   values, and `Bytes` for float32), `describe()` and `picture()`; and a function ``dice(...)`` that checks
   its arguments and returns one. Everything the page computes is computed here too, in NumPy.
2. ``js/dice.js``, a plain module that imports nothing (``js/_*.js`` stand in front of it): exported
   formulas, ``describe(get)``, which must return the very text of `describe()`, ``build(ui)``, and last
   ``export default explorer({ build, describe })``. `ui.get` reads a trait, `ui.set` changes it during a
   gesture, `ui.save` for good; `ui.show(paint, ...elements)` paints now and after each change. Elements come
   from ``h``, controls from `ui.slider`, `ui.toggle` and `ui.choice`, groups of buttons from ``roving``.
   ``js/dice.css`` may add style; take colours from the variables in ``explorers.css``.
3. Its name here, and a line in ``tests/browser/cases.py``, which puts it through rendering, keys, mouse,
   state, accessibility, JupyterLab, latency and screenshots; ``tests/course/widgets/test_dice.py`` compares
   formulas and texts under node.
"""

from __future__ import annotations

from tinytx_course.widgets.attention import AttentionExplorer, attention
from tinytx_course.widgets.base import Explorer
from tinytx_course.widgets.count import CountExplorer, count
from tinytx_course.widgets.mask import MaskExplorer, mask
from tinytx_course.widgets.next_word import NextWordExplorer, next_word
from tinytx_course.widgets.one_query import OneQueryExplorer, one_query
from tinytx_course.widgets.positions import PositionsExplorer, positions
from tinytx_course.widgets.sampling import SamplingExplorer, sampling
from tinytx_course.widgets.shapes import ShapesExplorer, shapes

__all__ = [
    "AttentionExplorer",
    "CountExplorer",
    "Explorer",
    "MaskExplorer",
    "NextWordExplorer",
    "OneQueryExplorer",
    "PositionsExplorer",
    "SamplingExplorer",
    "ShapesExplorer",
    "attention",
    "count",
    "mask",
    "next_word",
    "one_query",
    "positions",
    "sampling",
    "shapes",
]
