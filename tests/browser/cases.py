"""For browser tests: how to make each explorer, what to press, where to click."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import tinytx as tx
import tinytx_course as course
from tinytx_course.widgets.base import Explorer


@dataclass(frozen=True, kw_only=True)
class Case:
    """An explorer and what a person might do to it.

    Attributes
    ----------
    code : str
        An expression that makes it from ``tx``; JupyterLab is given the same.
    keys : (selector, key, key back, trait)
        With the focus there, the key changes the trait, and the other key changes it back.
    mouse : (selector, points, trait)
        Pressing at the first point (shares of width and height), moving over the others and releasing at the
        last changes the trait; one point is a click.
    sweep : (selector, pressed, rows)
        Moving over these elements changes pixels all the time, with the button pressed or not; the way goes
        over them in so many rows.
    """

    code: str
    keys: tuple[str, str, str, str]
    mouse: tuple[str, list[tuple[float, float]], str]
    sweep: tuple[str, bool, int]

    def make(self) -> Explorer:
        """Return the explorer, made once: some train a tokenizer. Nobody may change it."""
        return _made(self.code)


@functools.cache
def _made(code: str) -> Explorer:
    return eval(code, {"tx": tx, "course": course})


_READER = (
    "(lambda tokenizer: course.widgets.{kind}(tx.{model}(tx.PRESETS['tiny'].replace("
    "vocab_size=tokenizer.vocab_size)), tokenizer, {data}))(tx.Tokenizer.train({texts}, vocab_size=200))"
)
_SENTENCES = "[text for pair in tx.World().pairs(300, seed=0) for text in pair]"
_REVIEWS = "[' '.join(each.words) for each in tx.World().reviews(300, seed=0)]"

CASES: dict[str, Case] = {
    "alignment": Case(
        code=_READER.format(
            kind="alignment",
            model="Translator",
            data="tx.World().sentence_pairs(2, seed=3)",
            texts=_SENTENCES,
        ),
        keys=(".tx-right [tabindex='0']", "ArrowDown", "ArrowUp", "word"),
        mouse=(".tx-right button:nth-of-type(3)", [(0.5, 0.5)], "word"),
        sweep=(".tx-right", False, 9),
    ),
    "attention": Case(
        code="course.widgets.attention(tx.LanguageModel(tx.PRESETS['tiny']), ['a', 'b', 'c', 'a'], "
        "token_ids=[1, 2, 3, 1], untrained=True)",
        keys=("[aria-label='Query'] [tabindex='0']", "ArrowRight", "ArrowLeft", "query"),
        mouse=(".tx-matrix", [(0.5, 0.9)], "query"),
        sweep=(".tx-matrix", False, 5),
    ),
    "beam_tree": Case(
        code=_READER.format(
            kind="beam_tree",
            model="Translator",
            data="['The book is short.', 'The novel is good.']",
            texts=_SENTENCES,
        ),
        keys=(".tx-steps input", "ArrowRight", "ArrowLeft", "step"),
        mouse=(".tx-steps input[type='range']", [(0.1, 0.5), (0.5, 0.5)], "step"),
        sweep=(".tx-steps input[type='range']", True, 1),
    ),
    "by_hand": Case(
        code="course.widgets.by_hand('causal')",
        keys=(".tx-hand [tabindex='0']", " ", " ", "cells"),
        mouse=(".tx-hand button:last-child", [(0.5, 0.5)], "cells"),
        sweep=(".tx-hand button", False, 5),
    ),
    "count": Case(
        code="course.widgets.count()",
        keys=(".tx-size-T input", "ArrowRight", "ArrowLeft", "seq_len"),
        mouse=(".tx-size-T input", [(0.5, 0.5), (0.8, 0.5)], "seq_len"),
        sweep=(".tx-size-V input", True, 1),
    ),
    "depth": Case(
        code="course.widgets.depth()",
        keys=(".tx-setting input", "ArrowRight", "ArrowLeft", "n_layers"),
        mouse=(".tx-all tbody tr:nth-child(3)", [(0.5, 0.5)], "norm"),
        sweep=(".tx-setting input[type='range']", True, 1),
    ),
    "fill_blank": Case(
        code=_READER.format(
            kind="fill_blank",
            model="MaskedLanguageModel",
            data="",
            texts=_REVIEWS,
        ),
        keys=(".tx-words [tabindex='0']", "ArrowRight", "ArrowLeft", "position"),
        mouse=(".tx-word:nth-child(4)", [(0.5, 0.5)], "position"),
        sweep=(".tx-words", False, 2),
    ),
    "how_sure": Case(
        code="course.widgets.how_sure()",
        keys=(".tx-reading input", "ArrowRight", "ArrowLeft", "n_read"),
        mouse=(".tx-plot", [(0.5, 0.5), (0.7, 0.5)], "n_read"),
        sweep=(".tx-plot", True, 2),
    ),
    "live_model": Case(
        code="course.widgets.live_model('Bonjour les')",
        keys=("[aria-label='Token to follow'] [tabindex='0']", "ArrowLeft", "ArrowRight", "back"),
        mouse=(".tx-draw", [(0.5, 0.5)], "n_draws"),
        sweep=(".tx-writing input", True, 1),
    ),
    "mask": Case(
        code="(lambda e: e.set_state({'causal': False}) or e)(course.widgets.mask())",
        keys=(".tx-inputs [tabindex='0']", "ArrowDown", "ArrowUp", "moved"),
        mouse=(".tx-mask-grid", [(0.54, 0.4), (0.7, 0.4), (0.9, 0.4)], "drawn"),
        sweep=(".tx-cell", True, 6),
    ),
    "one_query": Case(
        code="course.widgets.one_query()",
        keys=(".tx-steps [tabindex='0']", "ArrowRight", "ArrowLeft", "step"),
        mouse=(".tx-grip", [(0.1, 0.5), (0.4, 0.5), (0.3, 0.5)], "own_q"),
        sweep=(".tx-grip", True, 1),
    ),
    "parsons": Case(
        code="course.widgets.parsons('attention')",
        keys=(".tx-lines li:nth-child(2) .tx-grip", "ArrowDown", "ArrowUp", "order"),
        mouse=(".tx-lines", [(0.02, 0.03), (0.02, 0.5), (0.02, 0.9)], "order"),
        sweep=(".tx-lines", True, 6),
    ),
    "playground": Case(
        code="course.widgets.playground(n_steps=9, d_model=8)",
        keys=(".tx-thumbs [tabindex='0']", "ArrowRight", "ArrowLeft", "head"),
        mouse=(".tx-thumb:nth-child(3)", [(0.5, 0.5)], "head"),
        sweep=(".tx-lr input", True, 1),
    ),
    "positions": Case(
        code="course.widgets.positions()",
        keys=(".tx-look input", "ArrowRight", "ArrowLeft", "position"),
        mouse=(".tx-pe-stage", [(0.3, 0.3), (0.5, 0.6)], "position"),
        sweep=(".tx-pe-stage", True, 5),
    ),
    "roofline": Case(
        code="course.widgets.roofline(2e11, 2e10, {'sum': (1e6, 12e6, 0.001), 'product': (2e9, 1e7, 0.02)})",
        keys=(".tx-sizes input", "ArrowRight", "ArrowLeft", "batch_size"),
        mouse=(".tx-plot", [(0.3, 0.5), (0.5, 0.5)], "batch_size"),
        sweep=(".tx-plot", True, 2),
    ),
    "sampling": Case(
        code="(lambda e: e.set_state({'stage': 2}) or e)(course.widgets.sampling())",  # a cut shows its stage
        keys=(".tx-dials .tx-control:nth-child(3) input", "ArrowLeft", "ArrowRight", "top_p"),
        mouse=(".tx-cut-k", [(0.5, 0.6), (-20, 0.6)], "top_k"),
        sweep=(".tx-dials .tx-control:first-child input", True, 1),
    ),
    "shapes": Case(
        code="course.widgets.shapes()",
        keys=(".tx-list [tabindex='0']", "ArrowDown", "ArrowUp", "step"),
        mouse=(".tx-tables", [(0.4, 0.95)], "token"),
        sweep=(".tx-tables", True, 5),
    ),
    "tokenizer": Case(
        code="(lambda e: e.set_state({'n_merges': 2}) or e)"
        "(course.widgets.tokenizer(['elle belle', 'elle'], ['elle belle', 'sel']))",
        keys=(".tx-merging input", "ArrowRight", "ArrowLeft", "n_merges"),
        mouse=(".tx-plot", [(0.5, 0.5), (0.7, 0.5)], "n_merges"),
        sweep=(".tx-plot", True, 3),
    ),
}
