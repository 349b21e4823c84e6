"""The explorer of a blank: what the exact distributions and a masked model say of a hidden token."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets

from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import SPACE_MARK, Tokenizer
from tinytx_course.engine.gloss import reviews_in_english
from tinytx_course.labs.lesson_17 import divergence
from tinytx_course.widgets.base import Explorer, bounded
from tinytx_run.evaluate import fill_probs
from tinyworld.world import World

_N_DRAWN = 3
_N_ROWS = 8
_SMALLEST = 1e-300


class FillBlankExplorer(Explorer):
    """See `fill_blank`.

    A blank holds the rows [token, exact both, exact left, model], the divergences `left` and `model` from
    the exact distribution in nats, how many tokens are `possible`, and the model's share of the `impossible`.
    `clearest` names a blank of each review. `guess` is the token that the reader chose, "?" who chose none;
    before, nothing is shown but the tokens.
    """

    kind = "fill_blank"
    title = traitlets.Unicode("Fill the blank").tag(sync=True)

    tokens = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    english = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)  # word by word
    blanks = traitlets.List(traitlets.List(traitlets.Dict())).tag(sync=True)
    clearest = traitlets.List(traitlets.Int()).tag(sync=True)
    review = bounded(0, 0, lambda its: len(its.tokens) - 1)
    position = bounded(0, 0, lambda its: max(map(len, its.tokens)) - 1)
    guess = traitlets.Unicode("").tag(sync=True)
    revealed = traitlets.Bool(False).tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and which token is hidden."""
        n_tokens = len(self.tokens[self.review])
        return (
            "The distribution of one hidden token of a review: exact given both sides, exact given the left "
            f"side, and by a masked model. Review {self.review + 1} of {len(self.tokens)}, hidden: token "
            f"{min(self.position, n_tokens - 1) + 1} of {n_tokens}."
        )


def fill_blank(model: MaskedLanguageModel, tokenizer: Tokenizer) -> FillBlankExplorer:
    """Hide a token of a review: which tokens are possible, and does a masked model know?

    At first it is the token for which both sides help a model most.
    The exact distributions are those of the world through the tokenizer, `TokenWorld`. Divergences are
    Kullback-Leibler divergences from the exact distribution given both sides, over the whole vocabulary.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
        The one that the model was trained with.

    Raises
    ------
    TypeError
        If the model is no masked language model.
    ValueError
        If a review is too long for the model.
    """
    if not isinstance(model, MaskedLanguageModel):
        raise TypeError(f"model must be a MaskedLanguageModel, got {type(model).__name__}")
    world = World()
    reviews = world.reviews(_N_DRAWN, seed=1)
    ids = tokenizer.encode_batch([" ".join(review.words) for review in reviews])
    blanks = [_blanks(world, model, tokenizer, row) for row in ids]
    clearest = [max(range(len(row)), key=lambda i: row[i]["left"] - row[i]["model"]) for row in blanks]
    return FillBlankExplorer(
        tokens=[[shown(tokenizer, token) for token in row] for row in ids],
        english=reviews_in_english(reviews),
        blanks=blanks,
        clearest=clearest,
        position=clearest[0],
    )


def shown(tokenizer: Tokenizer, token_id: int) -> str:
    """Return a token as it is written; one that continues a word begins with a hyphen."""
    if token_id == tokenizer.eos_id:
        return "(the end)"
    piece = tokenizer.piece(token_id)
    return piece.removeprefix(SPACE_MARK) or "␣" if piece.startswith(SPACE_MARK) else f"-{piece}"


def _blanks(
    world: World, model: MaskedLanguageModel, tokenizer: Tokenizer, ids: list[int]
) -> list[dict[str, Any]]:
    """One blank a token: what is most probable by the mean of the three, and what was hidden."""
    through = world.through(tokenizer)
    blanks = []
    for position, (token, both) in enumerate(zip(ids, through.fill_tokens(ids), strict=True)):
        left = through.next_token(ids[:position])
        guess = fill_probs(model, tokenizer, ids, position)
        table = np.stack([both, left, guess])  # (3, V)
        order = [i for i in np.argsort(-table.sum(axis=0), kind="stable").tolist() if i != token]
        gaps = divergence(both, np.log(np.maximum(table[1:], _SMALLEST)))
        rows = sorted([token, *order[: _N_ROWS - 1]], key=lambda i: tuple(-table[:, i]))
        blanks.append(
            {
                "rows": [[shown(tokenizer, i), *np.round(table[:, i], 5).tolist()] for i in rows],
                "left": round(float(gaps[0]), 4),
                "model": round(float(gaps[1]), 4),
                "possible": int((both > 0).sum()),
                "impossible": round(float(guess[both == 0].sum()), 5),
            }
        )
    return blanks
