"""The explorer of sampling: temperature, then top-k and top-p, then the remaining tokens scaled to 100%."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets

from tinytx.model.transformer import LanguageModel
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.generate import unwritten_ids
from tinytx.world.world import World
from tinytx_course.widgets.base import Explorer, between
from tinytx_course.widgets.continuations import model_and_tokenizer, next_logits

BEGINNINGS = ("Bonjour les amis,", "Le livre", "C'est", "Le roman est")
_MOST_DRAWS, _MOST_NUMBERS = 10_000, 24_000
_END = "(the end)"


class SamplingExplorer(Explorer):
    """See `sampling`."""

    kind = "sampling"
    title = traitlets.Unicode("How the next token is drawn").tag(sync=True)

    contexts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    logits = traitlets.Bytes().tag(sync=True)  # (contexts, V)
    truth: traitlets.List = traitlets.List().tag(sync=True)  # for each context: id, probability, id, ...
    context = traitlets.Int(0).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int(1).tag(sync=True)
    top_p = traitlets.Float(1.0).tag(sync=True)
    n_draws = traitlets.Int(0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    @traitlets.validate("context", "temperature", "top_k", "top_p", "n_draws", "seed")
    def _check_number(self, proposal: Any) -> float:
        limits = {
            "context": (0, len(self.contexts) - 1),
            "temperature": (0.1, 5.0),
            "top_k": (1, len(self.tokens)),
            "top_p": (0.01, 1.0),
            "n_draws": (0, _MOST_DRAWS),
            "seed": (0, 9999),
        }
        return between(proposal, *limits[proposal.trait.name])

    def summary(self) -> str:
        """Return what is shown, and the settings."""
        top_k = self.top_k if self.top_k < len(self.tokens) else "off"
        return (
            "The distribution of the next token through temperature, top-k and top-p to what is drawn"
            f"{', compared with the true probabilities' if self.truth else ''}. After "
            f"“{self.contexts[self.context]}”: temperature {self.temperature:g}, top-k {top_k}, "
            f"top-p {self.top_p:g}, {self.n_draws} drawn."
        )


def sampling(
    source: Any = None,
    tokenizer: Tokenizer | None = None,
    beginnings: Sequence[str] = BEGINNINGS,
    *,
    world: World | None = None,
    temperature: float = 1.5,
    top_k: int | None = 10,
    top_p: float | None = 0.8,
) -> SamplingExplorer:
    """Follow the next token from the logits to the draw, next to the true probabilities of the world.

    Parameters
    ----------
    source : LanguageModel or PretrainResult, optional
        A model whose next token is drawn. Without it the world plays the perfect model, in whole words: then
        only temperature, top-k and top-p separate it from the truth.
    tokenizer : Tokenizer, optional
        Of the model; a PretrainResult has its own.
    beginnings : sequence of str
        Texts to choose among, with the typography of `Review.text`.
    world : World, optional
        The language that the model has learned, to compare with. Without a model, by default ``World()``.
    temperature, top_k, top_p : float, int or None, float or None
        As in `tinytx.training.generate.next_token_probs`; the temperature is 0.1 to 5.

    Raises
    ------
    TypeError
        If a model comes without a tokenizer.
    ValueError
        If a number is out of range, no review begins like a beginning, or vocabulary times beginnings is too
        large for a page.

    Examples
    --------
    >>> explorer = sampling(beginnings=["Bonjour"], temperature=0.5, top_k=None)
    >>> explorer.tokens, explorer.truth
    (['les', 'à'], [[0, 0.666667, 1, 0.333333]])
    """
    texts = [beginnings] if isinstance(beginnings, str) else list(beginnings)
    if not texts:
        raise ValueError("beginnings must hold at least one text, got none")
    truth: np.ndarray | None
    if source is None:
        tokens, logits, truth = _of_world(world or World(), texts)
    else:
        tokens, logits, truth = _of_model(*model_and_tokenizer(source, tokenizer), texts, world)
    if logits.size > _MOST_NUMBERS:
        raise ValueError(
            f"a page holds at most {_MOST_NUMBERS} numbers, "
            f"got {len(texts)} beginnings of {len(tokens)} tokens"
        )
    return SamplingExplorer(
        contexts=texts,
        tokens=tokens,
        logits=logits.astype(np.float32).tobytes(),
        truth=[] if truth is None else [_sparse(chances) for chances in truth],
        temperature=temperature,
        top_k=len(tokens) if top_k is None else min(top_k, len(tokens)),
        top_p=1.0 if top_p is None else top_p,
        n_draws=10,
    )


def _of_world(world: World, texts: list[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the words that may follow some beginning, their logits and their probabilities."""
    following = [world.next_word(world.split(text)) for text in texts]
    words = list(dict.fromkeys(word for chances in following for word in chances))
    truth = np.array([[chances.get(word, 0.0) for word in words] for chances in following])
    with np.errstate(divide="ignore"):
        return [word or _END for word in words], np.log(truth), truth


def _of_model(
    model: LanguageModel, tokenizer: Tokenizer, texts: list[str], world: World | None
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Return the tokens, their logits after each beginning, and the true probabilities in a world."""
    written = [" ".join(world.split(text)) if world else text for text in texts]
    rows = [[tokenizer.bos_id, *tokenizer.encode(text)] for text in written]
    logits = torch.stack([next_logits(model, row) for row in rows])
    logits[:, list(unwritten_ids(tokenizer))] = -torch.inf
    tokens = [_END if i == tokenizer.eos_id else tokenizer.piece(i) for i in range(tokenizer.vocab_size)]
    exactly = world.through(tokenizer) if world else None
    truth = np.array([exactly.next_token(row) for row in rows]) if exactly else None
    return tokens, logits.float().numpy(), truth


def _sparse(chances: np.ndarray) -> list[float]:
    """Return id and probability of each possible token, one after the other; six digits make a page small."""
    pairs = [(int(i), max(round(float(chances[i]), 6), 1e-6)) for i in np.flatnonzero(chances)]
    return [number for pair in pairs for number in pair]
