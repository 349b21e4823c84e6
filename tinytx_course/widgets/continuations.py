"""What may come next after a beginning: probabilities of a model and of the world, and a tree of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tinytx.model.transformer import LanguageModel
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.generate import able_to_generate, check_vocabulary
from tinytx.training.inference import eval_mode
from tinytx.world.world import World
from tinytx_course.labs.lesson_08 import next_word_probs

N_ROWS = 10
WHOLE = 100_000  # probabilities travel as whole numbers, this one is 1
END = ""
_CHUNK = 32

Words = tuple[str, ...]
Row = list[Any]  # number of words that the world allows; then word, model, world, word, model, world ...


def model_and_tokenizer(source: Any, tokenizer: Tokenizer | None) -> tuple[LanguageModel, Tokenizer]:
    """Return both, from a model with its tokenizer or from what pretraining returns."""
    model = getattr(source, "model", source)
    tokenizer = getattr(source, "tokenizer", None) if tokenizer is None else tokenizer
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(f"a model needs the tokenizer it was trained with, got {type(tokenizer).__name__}")
    check_vocabulary(able_to_generate(model), tokenizer)
    return model, tokenizer


def next_logits(model: LanguageModel, token_ids: list[int]) -> torch.Tensor:
    """Return the logits (V,) of the next token; of a long text the model reads the end."""
    with eval_mode(model) as device:
        return model(torch.tensor([token_ids[-model.config.max_len :]], device=device))[0, -1].cpu()


class Continuations:
    """Ask the world, and a model if there is one, for the next whole words."""

    def __init__(self, world: World, model: LanguageModel | None, tokenizer: Tokenizer | None) -> None:
        self.world, self.model, self.tokenizer = world, model, tokenizer
        self._known: dict[Words, Row] = {}
        # The first token of each word.
        self._first = [tokenizer.word_pieces(word)[0] for word in world.vocabulary] if tokenizer else []

    def row(self, words: Sequence[str]) -> Row:
        """Return the words with the largest mean of the two probabilities, as `Row`; the end is `END`.

        Raises
        ------
        ValueError
            If no review begins like this, or the beginning is longer than the model can read.
        """
        beginning = tuple(words)
        if beginning not in self._known:
            truth = self.world.next_word(beginning)
            if self.model is None:
                chances = {word: (0.0, chance) for word, chance in truth.items()}
            else:
                chances = self._with_model(beginning, truth)
            best = sorted(chances.items(), key=lambda item: -sum(item[1]))[:N_ROWS]
            row: Row = [len(truth)]
            for word, (guess, true) in best:
                row += [END if word is None else word, _whole(guess), _whole(true)]
            self._known[beginning] = row
        return self._known[beginning]

    def _with_model(
        self, beginning: Words, truth: dict[str | None, float]
    ) -> dict[str | None, tuple[float, float]]:
        """Return probabilities of model and world for words that surely include those with the largest mean.

        No word is more probable than its first token. Words are scored in the order of this bound, until the
        best are above the bound of all that remain.
        """
        assert self.model is not None and self.tokenizer is not None
        vocabulary = self.world.vocabulary
        ids = [self.tokenizer.bos_id, *(p for word in beginning for p in self.tokenizer.word_pieces(word))]
        of_first = next_logits(self.model, ids).double().softmax(dim=-1).numpy()  # (V,)
        bound = of_first[self._first] + np.array([truth.get(word, 0.0) for word in vocabulary])
        order = np.argsort(-bound, kind="stable")
        found: dict[str | None, tuple[float, float]] = {}
        for at in range(0, len(order), _CHUNK):
            ahead = sorted(-sum(pair) for pair in found.values())[:N_ROWS]
            if len(ahead) == N_ROWS and -ahead[-1] >= bound[order[at]]:
                break
            some = [vocabulary[index] for index in order[at : at + _CHUNK]]
            *guesses, end = next_word_probs(self.model, self.tokenizer, beginning, some).tolist()
            found |= {word: (p, truth.get(word, 0.0)) for word, p in zip(some, guesses, strict=True)}
            found[None] = (end, truth.get(None, 0.0))
        return found

    def stored(self, beginnings: Sequence[Sequence[str]], n_stored: int) -> dict[str, Any]:
        """Return a tree of answers: all prefixes of the beginnings, then the most probable continuations.

        Returns
        -------
        dict
            ``words``, and ``nodes``: lists of whole numbers. The first two of a node are its parent node and
            the word appended to it (-1 and -1 for the empty beginning); its row follows. Words are given by
            their index in ``words``.
        """
        prefixes = {tuple(words[:length]) for words in beginnings for length in range(len(words) + 1)}
        waiting = [(-2.0, len(prefix), prefix) for prefix in prefixes]  # before all others, short ones first
        heapq.heapify(waiting)
        places: dict[Words, int] = {}
        names: dict[str, int] = {}
        nodes: list[list[int]] = []
        while waiting and (len(nodes) < n_stored or waiting[0][0] == -2.0):
            weight, depth, words = heapq.heappop(waiting)
            if words in places:
                continue
            row = self.row(words)
            way = [places[words[:-1]], names.setdefault(words[-1], len(names))] if words else [-1, -1]
            places[words] = len(nodes)
            numbered = [x if i % 3 else names.setdefault(x, len(names)) for i, x in enumerate(row[1:])]
            nodes.append([*way, row[0], *numbered])
            for word, guess, true in zip(row[1::3], row[2::3], row[3::3], strict=True):
                if true and word != END:
                    share = (guess + true) / (2 if self.model else 1) / WHOLE
                    heapq.heappush(waiting, (max(-1.0, weight) * share, depth + 1, (*words, word)))
        return {"words": list(names), "nodes": nodes}

    def mistake(self, words: Sequence[str]) -> tuple[Words, str]:
        """Return the longest possible prefix of a beginning, and a sentence about the word after it."""
        for place, word in enumerate(words):
            following = self.world.next_word(words[:place])
            if word in following:
                continue
            there = f"after “{words[place - 1]}”" if place else "at the beginning"
            if word in self.world.vocabulary:
                text = f"The language knows “{word}”, but not {there}."
            else:
                text = f"The language does not know the word “{word}”."
            alike = [one for one in following if one and one.casefold() == word.casefold()]
            hint = f" Did you mean “{alike[0]}”?" if alike else " Choose one of the words that may follow."
            return tuple(words[:place]), text + hint
        return tuple(words), ""


def _whole(share: float) -> int:
    """Return a probability as a whole number; what is possible stays above 0."""
    return max(1, round(WHOLE * share)) if share > 0 else 0
