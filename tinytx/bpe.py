"""Byte-pair encoding step by step: which two subwords are merged next.

`Tokenizer` trains with sentencepiece, fast and all at once. Here the same merges come one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tinytx.settings import check_whole
from tinytx.tokenizer import SPACE_MARK, several

Pieces = tuple[str, ...]


@dataclass(frozen=True)
class Merge:
    """One step of byte-pair encoding: two adjacent subwords become one."""

    left: str
    right: str
    count: int  # how often they were adjacent when they were merged

    @property
    def piece(self) -> str:
        """The new subword."""
        return self.left + self.right


def count_words(texts: Iterable[str]) -> dict[Pieces, int]:
    """Count the words of some texts, each as its characters after the mark of a space.

    Examples
    --------
    >>> count_words(["a b", "a"]) == {(SPACE_MARK, "a"): 2, (SPACE_MARK, "b"): 1}
    True
    """
    words = Counter(word for text in several(texts) for word in text.split(" ") if word)
    return {(SPACE_MARK, *word): count for word, count in words.items()}


def count_pairs(words: Mapping[Pieces, int]) -> Counter[tuple[str, str]]:
    """Count how often two subwords are adjacent within a word, given the words in subwords and their counts.

    Examples
    --------
    >>> count_pairs({("l", "e"): 6, ("e", "l", "le"): 2})["e", "l"]
    2
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for pieces, count in words.items():
        for pair in pairwise(pieces):
            pairs[pair] += count
    return pairs


def join_pair(pieces: Sequence[str], left: str, right: str) -> Pieces:
    """Merge two subwords wherever they are adjacent, from left to right.

    Examples
    --------
    >>> join_pair(("e", "l", "l", "e"), "l", "e")
    ('e', 'l', 'le')
    """
    joined: list[str] = []
    for piece in pieces:
        if joined and joined[-1] == left and piece == right:
            joined[-1] = left + right
        else:
            joined.append(piece)
    return tuple(joined)


def learn_merges(texts: Iterable[str], n_merges: int) -> list[Merge]:
    """Merge the most frequent pair of adjacent subwords, `n_merges` times or until every word is one subword.

    Of equally frequent pairs the one with the shorter subword wins, then the first in the order of
    characters. A pair whose subword was already made of other parts is skipped, as in sentencepiece.

    Parameters
    ----------
    texts : iterable of str
    n_merges : int
        At least 0.

    Returns
    -------
    list of Merge
        In the order in which they were made.

    References
    ----------
    Sennrich, Haddow and Birch, arXiv 1508.07909, section 3.2 and algorithm 1.

    Examples
    --------
    >>> [merge.piece for merge in learn_merges(["elle belle", "elle"], 2)]
    ['el', 'le']
    """
    check_whole("n_merges", n_merges, 0)
    words = count_words(texts)
    merges: dict[str, Merge] = {}
    while len(merges) < n_merges:
        fresh = {pair: n for pair, n in count_pairs(words).items() if "".join(pair) not in merges}
        if not fresh:
            break
        left, right = min(fresh, key=lambda pair: (-fresh[pair], len("".join(pair)), "".join(pair)))
        words = {join_pair(p, left, right) if left in p else p: n for p, n in words.items()}
        merges[left + right] = Merge(left, right, fresh[left, right])
    return list(merges.values())


def segment(text: str, merges: Sequence[Merge]) -> list[str]:
    """Split a text into subwords: apply the earliest learned merge, as long as one applies.

    Each word begins with the mark of a space. `merges` are in the order in which they were learned.
    """
    rank = {merge.piece: number for number, merge in enumerate(merges)}
    segmented: list[str] = []
    for word in filter(None, text.split(" ")):
        pieces = [SPACE_MARK, *word]
        while True:
            pairs = ["".join(pair) for pair in pairwise(pieces)]
            if not (known := [(rank[pair], place) for place, pair in enumerate(pairs) if pair in rank]):
                break
            _, place = min(known)
            pieces[place : place + 2] = [pairs[place]]
        segmented += pieces
    return segmented
