"""Explorers: interactive pictures, in JupyterLab and in pages without a kernel or a network.

>>> from tinytx_course import widgets
>>> widgets.mask(["a", "b"])
Mask explorer. Which query may attend to which key, ... 2 tokens, mask: causal.

Each function takes the data that is shown and returns an `Explorer`; what the reader changes in the picture
is an attribute of it, which Python may set too: ``explorer.window = 2``.

Each explorer has one implementation: ``js/<kind>.js`` computes, draws and says in words what follows from
its state. Python (``<kind>.py``) checks the state and supplies what needs torch. How to add one, called
``dice`` here:

1. ``dice.py``: a subclass of `Explorer` with `kind` ``"dice"``, a title, traits tagged ``sync=True`` (plain
   values, and `Bytes` for float32), numbers that are `bounded`, and `summary()`; a function ``dice(...)``
   that checks its arguments and returns one. Its name here.
2. ``js/dice.js``, a plain module that imports nothing (``js/_*.js`` are put in front of it): exported
   formulas, ``describe(get)``, the finding in a sentence, then after a line break the rest of the state in
   words, which the page folds, ``build(ui)``, and last
   ``export default explorer("dice", { build, describe })``. `ui.get` reads a trait, `ui.set` changes it
   during a gesture, `ui.save` for good; `ui.show(paint, ...elements)` paints now and after each change.
   Elements come from ``h``, controls from `ui.slider`, `ui.toggle`, `ui.choice`, `ui.picks` and `ui.player`,
   groups of buttons from ``roving``, or ``radioGroup`` where one is chosen, what is dragged from ``dragged``
   (with keys that do the same), charts with axes from ``plot``. `ui.animate` moves, and shows the end at once
   to who wants no motion. An exported ``keep`` names the traits that the address of a page holds
   (``_address.js``). All of it, 944 pixels wide, fits a screen of 720 lines. ``js/dice.css`` holds the style
   of this explorer alone; take colours from the variables in ``explorers.css``. Where it computes with the
   engine of the page, ``assets.py`` names the modules that come with it.
3. A line in ``tests/browser/cases.py``, which tries it in the browser; ``tests/course/widgets/test_dice.py``
   runs the module in node and compares it with torch.
"""

from __future__ import annotations

from tinytx_course.widgets.alignment import alignment
from tinytx_course.widgets.attention import attention
from tinytx_course.widgets.beam_tree import beam_tree
from tinytx_course.widgets.by_hand import by_hand
from tinytx_course.widgets.count import count
from tinytx_course.widgets.depth import depth
from tinytx_course.widgets.fill_blank import fill_blank
from tinytx_course.widgets.how_sure import how_sure
from tinytx_course.widgets.live_model import live_model
from tinytx_course.widgets.mask import mask
from tinytx_course.widgets.one_query import one_query
from tinytx_course.widgets.parsons import parsons
from tinytx_course.widgets.playground import playground
from tinytx_course.widgets.positions import positions
from tinytx_course.widgets.roofline import roofline
from tinytx_course.widgets.sampling import sampling
from tinytx_course.widgets.shapes import shapes
from tinytx_course.widgets.tokenizer import tokenizer

__all__ = [
    "alignment",
    "attention",
    "beam_tree",
    "by_hand",
    "count",
    "depth",
    "fill_blank",
    "how_sure",
    "live_model",
    "mask",
    "one_query",
    "parsons",
    "playground",
    "positions",
    "roofline",
    "sampling",
    "shapes",
    "tokenizer",
]
