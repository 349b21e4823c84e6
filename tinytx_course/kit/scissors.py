"""Attention with paper and scissors: cards with small integers to cut out, and what they give, computed."""

from __future__ import annotations

import html
import math
from pathlib import Path

import torch
from torch import Tensor

import tinytx as tx
from tinytx_course.kit.pages import write_page
from tinytx_course.site.pages import table

LESSON, PAGE = 2, "paper-attention.html"
#: Words, and the numbers on their cards. Each score, q · k / √4, is a whole number from 0 to 3.
WORDS = ("Lea", "sings", "she", "smiles")
QUERIES = ((0, 2, 2, 0), (2, 0, 2, 0), (1, 1, 2, 2), (1, 2, 2, 2))
KEYS = ((2, 0, 1, 1), (0, 0, 1, 1), (0, 2, 0, 1), (2, 0, 0, 0))
VALUES = ((10, 0), (0, 20), (20, 10), (10, 30))
LARGEST = 3  # of the scores
_STEPS = (
    "Cut out the twelve cards. Each word has a query (what it asks for), a key (what it offers) and a value "
    "(what it gives).",
    "Each of you takes one word; three take Lea, she and smiles, two take she and smiles. Your word asks: "
    "lay its query next to each of the four keys. Multiply number by number and add up. Halve the sum: this "
    "is division by the root of 4, as there are 4 numbers. Write down the four scores.",
    "Turn each score into eˣ with the table, and add the four up. The weight of a word is its share of the "
    "sum: softmax. Write it in percent.",
    "Take that share of each value, and add up, first number and second number: the context of the word that "
    "asks. Stop here: step 5 comes after the first vote.",
    "Now with a causal mask, one word at a time and all together: first smiles, then she, sings and Lea. "
    "Turn over the keys and the values of all words that come later, and begin again with step 3. What has "
    "changed for smiles, and what for Lea?",
    "Compare with the answer strip. A difference of 1 comes from rounding.",
)


def attend(*, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, weights in percent and contexts of the four words, by the package.

    Returns
    -------
    tuple of Tensor
        Shapes (4, 4), (4, 4) and (4, 2).
    """
    q, k, v = (torch.tensor(numbers, dtype=torch.float64) for numbers in (QUERIES, KEYS, VALUES))
    mask = tx.causal_mask(len(WORDS)) if causal else None
    scores = q @ k.T / math.sqrt(q.shape[1])
    return scores, 100 * tx.attention_weights(q, k, mask), tx.attention(q, k, v, mask)


def write_scissors(folder: Path) -> Path:
    """Write the sheets: cards, work sheet, answer strip."""
    powers = [[str(x) for x in range(LARGEST + 1)], [f"{math.exp(x):.1f}" for x in range(LARGEST + 1)]]
    empty = [[f"<b>{word}</b>", *[""] * 4] for word in WORDS]
    body = [
        '<section class="sheet-of-paper"><h1>Attention with paper and scissors</h1>',
        "<ol>" + "".join(f"<li>{html.escape(step)}</li>" for step in _STEPS) + "</ol>",
        f"<p>The sentence: <b>{' '.join(WORDS)}</b>. A good first word to ask is <b>she</b>.</p>",
        table(["score", *powers[0]], [["eˣ", *powers[1]]]),
        f"<h2>Without a mask</h2><p>{_BLANK}</p>{_sheet(empty)}",
        f"<h2>Causal: later words turned over</h2><p>{_BLANK}</p>{_sheet(empty)}</section>",
        '<section class="sheet-of-paper"><h2>Cards to cut out</h2><div class="cards">',
        *(
            _card(kind, word, numbers)
            for kind, all_of in _KINDS
            for word, numbers in zip(WORDS, all_of, strict=True)
        ),
        "</div></section>",
        '<section class="sheet-of-paper"><h2>Answer strip (keep it back)</h2>',
        *(_strip(causal) for causal in (False, True)),
        "</section>",
    ]
    title = "Attention with paper and scissors"
    return write_page(folder / PAGE, title, "".join(body), up="index.html")


_KINDS = (("query", QUERIES), ("key", KEYS), ("value", VALUES))
_BLANK = 'The word that asks: <span class="blank"></span>'


def _wide(head: list[str], cells: list[list[str]]) -> str:
    return f'<div class="wide" tabindex="0">{table(head, cells)}</div>'


def _sheet(cells: list[list[str]]) -> str:
    head = ["word", "score", "eˣ", "weight, %", "weight · value"]
    return _wide(head, [*cells, ["<b>sum</b>", "", "", "", ""]])


def _card(kind: str, word: str, numbers: tuple[int, ...]) -> str:
    shown = " ".join(f"<span>{number}</span>" for number in numbers)
    return f'<div class="card {kind}"><small>{kind} of</small> <b>{word}</b><div>{shown}</div></div>'


def _strip(causal: bool) -> str:
    scores, weights, contexts = attend(causal=causal)
    cells = []
    for t, word in enumerate(WORDS):
        seen = t + 1 if causal else len(WORDS)
        cells.append(
            [
                f"<b>{word}</b>",
                *(f"{score:.0f}" if s < seen else "–" for s, score in enumerate(scores[t].tolist())),
                *(f"{weight:.0f} %" for weight in weights[t].tolist()),
                "(" + ", ".join(f"{number:.0f}" for number in contexts[t].tolist()) + ")",
            ]
        )
    head = ["asks", *(f"score {word}" for word in WORDS), *(f"weight {word}" for word in WORDS), "context"]
    return f"<h3>{'Causal' if causal else 'Without a mask'}</h3>{_wide(head, cells)}"
