r"""The world through a tokenizer: exact probabilities of tokens, from those of words.

Models read ``" ".join(review.words)``. The tokenizer encodes every word by itself: the first token of a word
begins with the mark of a space, the others do not. So a sequence of tokens splits into words in one way only,
up to the last word, which may be complete or not:

.. math::
    P(x \mid \text{tokens}) \propto
    \sum_{v \text{ continues with } x} P(v \mid \text{words})
    + P(u \mid \text{words}) \sum_{v \text{ begins with } x} P(v \mid \text{words}, u)

where :math:`u` is the word that the last tokens spell, if there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tinyworld.automaton import Automaton, Backward, Forward, Layer

Pieces = tuple[int, ...]


class Tokenizer(Protocol):
    """What the world asks of a tokenizer, such as `tinytx.Tokenizer`."""

    @property
    def vocab_size(self) -> int: ...

    unk_id: int
    bos_id: int
    eos_id: int

    def encode(self, text: str) -> list[int]: ...
    def decode(self, token_ids: Sequence[int]) -> str: ...
    def word_pieces(self, word: str) -> Pieces: ...
    def piece(self, token_id: int) -> str: ...


class TokenWorld:
    """Exact probabilities of tokens; made by `World.through`.

    Parameters
    ----------
    automaton, backward : Automaton, Backward
    tokenizer : Tokenizer
        Must know every character of the world, and write each word in pieces of its own, the same wherever
        the word stands.

    Raises
    ------
    ValueError
        If some word holds a character that the tokenizer does not know, or is written like another word, as
        without capitals, or at the beginning of a text in another way than elsewhere.

    Examples
    --------
    >>> import tinytx as tx
    >>> from tinyworld.world import World
    >>> world = World()
    >>> tokenizer = tx.Tokenizer.train(world.vocabulary, vocab_size=100)
    >>> chances = world.through(tokenizer).next_token(tokenizer.encode("Le roman est b"))
    >>> round(float(chances.sum()), 9), tokenizer.piece(chances.argmax())  # of "bien"
    (1.0, 'i')
    """

    def __init__(self, automaton: Automaton, backward: Backward, tokenizer: Tokenizer) -> None:
        self._automaton, self._backward, self._tokenizer = automaton, backward, tokenizer
        self._words = automaton.network.words
        self._pieces = [tokenizer.word_pieces(word) for word in self._words]
        if lost := [w for w, p in zip(self._words, self._pieces, strict=True) if tokenizer.unk_id in p]:
            raise ValueError(
                f"the tokenizer must know every character of the world, but not those of {lost[:5]}"
            )
        two = (self._words[-1], self._words[0])
        ids = [*self._pieces[-1], *self._pieces[0]]
        if len(set(self._pieces)) < len(self._words) or tokenizer.encode(" ".join(two)) != ids:
            raise ValueError(
                "the tokenizer must write each word of the world in pieces of its own, the same wherever it "
                f"stands, got {len(set(self._pieces)):,} ways for {len(self._words):,} words, and "
                f"{tokenizer.decode(ids)!r} for the pieces of {' '.join(two)!r}"
            )
        self._first = np.array([pieces[0] for pieces in self._pieces])
        self._starts = frozenset(self._first.tolist())
        self._whole = {pieces: index for index, pieces in enumerate(self._pieces)}
        self._begun: dict[Pieces, list[int]] = defaultdict(list)  # pieces -> words that continue them
        self._ended: dict[Pieces, list[int]] = defaultdict(list)  # pieces -> words with one more in front
        for index, pieces in enumerate(self._pieces):
            for length in range(1, len(pieces)):
                self._begun[pieces[:length]].append(index)
            self._ended[pieces[1:]].append(index)

    def next_token(self, prefix_ids: Sequence[int]) -> np.ndarray:
        """The probability of each next token.

        Parameters
        ----------
        prefix_ids : sequence of int
            Tokens from the beginning of a review, with or without `bos_id`.

        Returns
        -------
        ndarray of shape (vocab_size,)
            Sums to 1; the entry of `eos_id` is the end of the review.

        Raises
        ------
        ValueError
            If no review begins with these tokens.
        """
        if self._tokenizer.eos_id in prefix_ids:
            raise ValueError("a prefix must not hold the end of the review, got eos_id")
        words, last = self._parse(self._body(prefix_ids)[0])
        before = self._automaton.forward(words)
        chances = np.zeros(self._tokenizer.vocab_size)
        if before.total > 0:
            chances = self._first_pieces(before) if not last else self._continue(before, last)
        if not chances.sum() > 0:
            raise ValueError(f"a prefix must begin some review, got {self._tokenizer.decode(prefix_ids)!r}")
        shares: np.ndarray = chances / chances.sum()
        return shares

    def _continue(self, before: Forward, last: Pieces) -> np.ndarray:
        words = self._automaton.next_words([before])[0]
        begun = self._begun.get(last, [])
        pieces = [self._pieces[index][len(last)] for index in begun]
        chances = self._tally(pieces, words[begun])
        whole = self._whole.get(last)
        if whole is not None and words[whole] > 0:
            after = self._automaton.advance(before, self._words[whole])
            chances += words[whole] * self._first_pieces(after)
        return chances

    def _first_pieces(self, before: Forward) -> np.ndarray:
        words = self._automaton.next_words([before])[0]
        chances = self._tally(self._first, words[:-1])
        chances[self._tokenizer.eos_id] += words[-1]
        return chances

    def fill_token(self, ids: Sequence[int], position: int) -> np.ndarray:
        """The probability of each token at a hidden position, given all the others, left and right.

        Parameters
        ----------
        ids : sequence of int
            A whole review, with or without `bos_id` and `eos_id`.
        position : int
            Index into `ids` of a token, whose value is ignored; not that of `bos_id` or `eos_id`.

        Returns
        -------
        ndarray of shape (vocab_size,)
            Sums to 1.

        Raises
        ------
        ValueError
            If no token makes the rest a review.
        """
        body, offset = self._body(ids)
        place = position - offset
        if not 0 <= place < len(body):
            raise ValueError(
                f"position must be that of a piece, {offset} to {offset + len(body) - 1}, got {position}"
            )
        words, last = self._parse(body[:place])
        rest = list(body[place + 1 :])
        tail = tuple(rest[: next((i for i, one in enumerate(rest) if one in self._starts), len(rest))])
        following, unfinished = self._parse(rest[len(tail) :])
        following = [*following, self._word(unfinished)] if unfinished else following
        after = self._backward.layers(following)[0]
        chances = self._between(self._automaton.forward(words), last, tail, after)
        if not chances.sum() > 0:
            raise ValueError(f"some piece must make this a review, but none does at {position}")
        shares: np.ndarray = chances / chances.sum()
        return shares

    def fill_tokens(self, ids: Sequence[int]) -> np.ndarray:
        """`fill_token` for each position of a review in turn, in one forward and one backward pass.

        Parameters
        ----------
        ids : sequence of T ints
            A whole review without `bos_id` and `eos_id`.

        Returns
        -------
        ndarray of shape (T, vocab_size)
            Rows sum to 1.

        Raises
        ------
        ValueError
            If the tokens are not a review.
        """
        whole, unfinished = self._parse(ids)
        words = [*whole, self._word(unfinished)] if unfinished else whole
        before, after = self._automaton.prefixes(words), self._backward.layers(words)
        if not before[-1].stopped.any():
            raise ValueError(f"the pieces must be those of a review, got {self._tokenizer.decode(ids)!r}")
        nothing: Pieces = ()
        spans = [nothing, *(self._pieces[self._automaton.word_ids[word]] for word in words)]
        rows = []
        for number, span in enumerate(spans[1:]):
            for place in range(len(span)):
                # The hidden token may continue its word or, as the first one, the word before.
                inside = place > 0 or number == 0
                state = before[number] if inside else before[number - 1]
                last = span[:place] if inside else spans[number]
                rows.append(self._between(state, last, span[place + 1 :], after[number + 1]))
        chances = np.stack(rows)
        shares: np.ndarray = chances / chances.sum(axis=1, keepdims=True)
        return shares

    def _between(self, before: Forward, last: Pieces, tail: Pieces, after: Layer) -> np.ndarray:
        """Weights of the tokens between `last`, which may be a whole word, and the rest of a word."""
        scale = before.log_scale
        inside = [v for v in self._begun.get(last, []) if self._pieces[v][len(last) + 1 :] == tail]
        chances = self._weighed(before, inside, [self._pieces[v][len(last)] for v in inside], after)
        if last and last not in self._whole:
            return chances
        if last:
            before = self._automaton.advance(before, self._word(last))
        first = self._ended.get(tail, [])
        found = self._weighed(before, first, [self._pieces[v][0] for v in first], after)
        both: np.ndarray = chances + np.exp(before.log_scale - scale) * found
        return both

    def _weighed(self, before: Forward, fits: list[int], pieces: list[int], after: Layer) -> np.ndarray:
        """Sum over the words that fit, by the token that each needs."""
        return self._tally(pieces, self._backward.between(before, after)[fits])

    def _tally(self, pieces: Sequence[int] | np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Sum of the weights of each token; shape (vocab_size,)."""
        counted = np.bincount(
            np.asarray(pieces, dtype=np.int64), weight, minlength=self._tokenizer.vocab_size
        )
        return counted.astype(float)  # without any piece they would be integers

    def _body(self, ids: Sequence[int]) -> tuple[list[int], int]:
        """The ids without `bos_id` and `eos_id`, and the number of ids removed in front."""
        body = [int(one) for one in ids]
        offset = int(body[:1] == [self._tokenizer.bos_id])
        end = len(body) - int(body[-1:] == [self._tokenizer.eos_id])
        return body[offset:end], offset

    def _parse(self, ids: Sequence[int]) -> tuple[list[str], Pieces]:
        """Split tokens into whole words, and the tokens of the last one, which may be incomplete."""
        if not ids:
            return [], ()
        starts = [place for place, one in enumerate(ids) if one in self._starts]
        if not starts or starts[0] != 0:
            raise ValueError(f"the first piece must begin a word, got {self._tokenizer.piece(ids[0])!r}")
        spans = [tuple(ids[a:b]) for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]
        return [self._word(pieces) for pieces in spans[:-1]], spans[-1]

    def _word(self, pieces: Pieces) -> str:
        if pieces not in self._whole:
            spelled = "".join(self._tokenizer.piece(one) for one in pieces)
            raise ValueError(f"pieces must spell words of the world, got {spelled!r}")
        return self._words[self._whole[pieces]]
