"""Pairs of reviews that differ in one word, and the effects of patches between them; for lesson 17.

Shape letters: P pairs, T tokens, H heads, L layers, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tinytx.attention import record_attention
from tinytx.batching import pad_batch
from tinytx.inference import eval_mode
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs.lesson_17 import EXPECTED, WordForms, heads_replaced, record_heads
from tinyworld.automaton import Forward
from tinyworld.reviews import Review
from tinyworld.world import World

LEAST_EFFECT = 1.0  # nats by which the two reviews of a pair must differ in the exact language
END = (".", "!")


@dataclass(frozen=True)
class Pair:
    """The beginnings of two reviews that differ in one word, up to where its effect is measured."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    changed: int  # the number of the word in which they differ
    exact: tuple[float, float]  # exact log-odds of two groups of words at the next position, after each


def one_word_pairs(
    world: World, forms: WordForms, tokenizer: Tokenizer, reviews: Sequence[Review], kind: str
) -> list[Pair]:
    """At most one pair a review.

    Parameters
    ----------
    kind : {"polarity", "gender"}
        "polarity" exchanges an adjective of the first sentence for one of the other polarity and waits for a
        polar adjective in a later one; "gender" exchanges a noun for one of the other gender and waits for a
        form that agrees with it, in the same sentence.
    """
    if kind not in ("polarity", "gender"):
        raise ValueError(f"kind must be 'polarity' or 'gender', got {kind!r}")
    groups = getattr(forms, kind)
    rng = np.random.default_rng(0)
    odds, found = _Odds(world, tokenizer, groups), []
    for review in reviews:
        words = review.words
        before = world.automaton.prefixes(words)
        awaited = (world.automaton.next_words(before[1:]) @ groups).sum(axis=1) >= EXPECTED
        sentence = np.cumsum([0, *(word in END for word in words[:-1])])
        stops = np.flatnonzero(awaited & (sentence > 0)) if kind == "polarity" else np.flatnonzero(awaited)
        for stop in stops[:1].tolist():
            own = 0 if kind == "polarity" else sentence[stop]
            for changed in rng.permutation(np.flatnonzero(sentence[:stop] == own)).tolist():
                others = _others(forms, tokenizer, words[changed], kind)
                pair = odds.pair(words[: stop + 1], changed, rng.permutation(others)[:5].tolist(), before)
                if pair is not None and (kind == "gender" or np.isfinite(pair.exact).all()):
                    found.append(pair)
                    break
    return found


def _others(forms: WordForms, tokenizer: Tokenizer, word: str, kind: str) -> list[str]:
    """Words of the other polarity or gender, equal in all else, with as many tokens."""
    if kind == "polarity":
        table, shape = forms.sign, forms.shape(word)
        fits = [w for w, sign in table.items() if sign == 1 - table.get(word, 2) and forms.shape(w) == shape]
    else:
        nouns = forms.forms.nouns
        other = [("fm"[gender == "f"], number) for gender, number in nouns.get(word, ())]
        fits = [w for w, shapes in nouns.items() if len(other) == 1 and shapes == other]
    n_pieces = len(tokenizer.word_pieces(word))
    return [w for w in fits if len(tokenizer.word_pieces(w)) == n_pieces]


class _Odds:
    """Exact log-odds of two groups of words after a prefix; NaN where neither, or no review, is possible."""

    def __init__(self, world: World, tokenizer: Tokenizer, groups: np.ndarray) -> None:
        self.automaton, self.tokens = world.automaton, group_tokens(world, tokenizer, groups)
        first = np.array([tokenizer.word_pieces(word)[0] for word in world.vocabulary])
        ends = np.zeros((1, 2))
        self.groups = np.concatenate([self.tokens.numpy()[first], ends])  # as the tokens tell them apart

    def pair(
        self, words: Sequence[str], changed: int, others: Sequence[str], before: Sequence[Forward]
    ) -> Pair | None:
        """The pair with the first other word that fits and matters; `before` are the states of `words`."""
        own = self._of(before[len(words)])
        for other in others:
            state = self.automaton.read([other, *words[changed + 1 :]], before[changed])
            two = (own, tuple(words)), (self._of(state), (*words[:changed], other, *words[changed + 1 :]))
            (b, second), (a, first) = sorted(two, key=lambda one: one[0])  # so that the effect is positive
            if a - b >= LEAST_EFFECT:  # not where one of the two is NaN, or both are certain of the same
                return Pair(first, second, changed, (a, b))
        return None

    def _of(self, state: Forward) -> float:
        if not state.total > 0:
            return float("nan")
        zero, one = self.automaton.next_words([state])[0] @ self.groups
        with np.errstate(divide="ignore"):
            return float(np.log(one) - np.log(zero)) if zero + one >= EXPECTED else float("nan")


def group_tokens(world: World, tokenizer: Tokenizer, groups: np.ndarray) -> Tensor:
    """Which tokens begin words of one of two groups only: (vocab_size, 2), bool."""
    starts = torch.zeros(tokenizer.vocab_size, 3)
    for word, row in zip(world.vocabulary, groups, strict=False):
        column = int(row.argmax()) if row.any() else 2
        starts[tokenizer.word_pieces(word)[0], column] = 1
    only = starts.sum(dim=1) == 1
    return (starts[:, :2] > 0) & only[:, None]


class PairRuns:
    """A model that reads pairs of beginnings; effects in nats of log-odds, one number a pair.

    Parameters
    ----------
    tokens : Tensor of shape (vocab_size, 2), bool
        See `group_tokens`.

    Attributes
    ----------
    whole : ndarray of shape (P,)
        Log-odds after the first review minus those after the second: what a patch can move at most.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tokens: Tensor
    ) -> None:
        self.model, self._groups = model, tokens
        self._rows, ends = [], []
        for side in ("first", "second"):
            pieces = [[tokenizer.word_pieces(word) for word in getattr(pair, side)] for pair in pairs]
            rows = [[tokenizer.bos_id, *(one for word in words for one in word)] for words in pieces]
            ends = [np.cumsum([0, *(len(word) for word in words)]) for words in pieces]
            self._rows.append(pad_batch(rows, tokenizer.pad_id))
        self.last = torch.tensor([int(end[-1]) for end in ends])  # (P,)
        self._changed = torch.zeros(self._rows[0].shape, dtype=torch.bool)  # (P, T)
        for row, pair, end in zip(self._changed, pairs, ends, strict=True):
            row[end[pair.changed] + 1 : end[pair.changed + 1] + 1] = True
        with record_heads(model.body) as heads:
            first = self._log_odds(self._rows[0])
        self.heads = heads  # of the first review
        with record_attention(model.body) as recorded:
            self.second = self._log_odds(self._rows[1])
        self.attention = torch.cat([weights[None] for weights in recorded.values()])  # (L, P, H, T, T)
        self.whole = first - self.second

    def _log_odds(self, rows: Tensor) -> np.ndarray:
        with eval_mode(self.model):
            logits = self.model(rows)[torch.arange(len(rows)), self.last].double()  # (P, V)
        zero, one = (logits[:, column].logsumexp(dim=1) for column in self._groups.T)
        return (one - zero).numpy()

    def patch_head(self, layer: int, head: int) -> np.ndarray:
        """Effect of the outputs of one head in the first review within the run of the second; shape (P,)."""
        with heads_replaced(self.model.body, {(layer, head): self.heads[layer][:, :, head]}):
            return self._log_odds(self._rows[1]) - self.second

    def effects(self) -> np.ndarray:
        """`patch_head` of every head, (L, H, P)."""
        config = self.model.config
        return np.array(
            [[self.patch_head(n, h) for h in range(config.n_heads)] for n in range(config.n_layers)]
        )

    def attention_to_change(self) -> np.ndarray:
        """Attention of the last position to the changed word, in the second review; shape (L, H, P)."""
        rows = torch.arange(len(self.last))
        weights = self.attention[:, rows, :, self.last]  # (P, L, H, T)
        changed = self._changed[:, None, None]  # (P, 1, 1, T)
        return (weights * changed).sum(dim=-1).permute(1, 2, 0).double().numpy()
