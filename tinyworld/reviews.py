"""Reviews: the distribution of their hidden variables, and their words written as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tinyworld.grammar import POLARITIES

N_LABELS = len(POLARITIES)
APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'"})
NO_SPACE_BEFORE = {"fr": {",", "."}, "en": {",", ".", "!"}}


@dataclass(frozen=True)
class Review:
    """A book review.

    Attributes
    ----------
    words : tuple of str
        Its units: elided articles, words, punctuation marks; joined by single spaces they are what models
        read.
    label : int
        1 if the review is favourable, else 0.
    genre : str
        Hidden genre of the book, one of `GENRES`.
    book : str
        Hidden noun for such a book, "saga" or "journal"; most often the review calls it so, too.
    language : str
        ``"fr"`` or ``"en"``.

    Examples
    --------
    >>> review = Review(("C'", "est", "un", "beau", "roman", "."), label=1, genre="novel", book="roman")
    >>> review.text
    "C'est un beau roman."
    """

    words: tuple[str, ...]
    label: int
    genre: str
    book: str
    language: str = "fr"

    @property
    def text(self) -> str:
        """The review as people read it."""
        return write_out(self.words, self.language)


@dataclass(frozen=True)
class ReviewPlan:
    """Distribution of the hidden variables of a review.

    Attributes
    ----------
    sentences : mapping from int to float
        Probability of each number of sentences.
    agreement : float
        Probability that a sentence has the polarity of its review.
    openers : mapping from str to mapping
        For a sentence that comes first, keeps or turns the polarity of the one before (``"first"``,
        ``"same"``, ``"turn"``): probability of each kind of opener; ``"plain"`` is none.

    Examples
    --------
    >>> plan = ReviewPlan(sentences={2: 1.0}, agreement=0.9)
    >>> from tinyworld.world import World
    >>> {len([w for w in review.words if w in ".!"]) for review in World(plan=plan).reviews(20, seed=1)}
    {2}
    """

    sentences: Mapping[int, float] = field(
        default_factory=lambda: {2: 0.15, 3: 0.25, 4: 0.25, 5: 0.20, 6: 0.15}
    )
    agreement: float = 0.95
    openers: Mapping[str, Mapping[str, float]] = field(
        default_factory=lambda: {
            "first": {"plain": 0.80, "greeting": 0.12, "remark": 0.08},
            "same": {"plain": 0.70, "further": 0.18, "remark": 0.12},
            "turn": {"plain": 0.30, "contrast": 0.58, "remark": 0.12},
        }
    )

    def __post_init__(self) -> None:
        named: dict[str, Mapping[int, float] | Mapping[str, float]] = {
            "sentences": self.sentences,
            **self.openers,
        }
        for name, chances in named.items():
            if abs(sum(chances.values()) - 1.0) > 1e-9 or min(chances.values()) < 0:
                raise ValueError(f"chances of {name} must be 0 or more and sum to 1, got {dict(chances)}")
        if wrong := [n for n in self.sentences if not isinstance(n, int) or n < 1]:
            raise ValueError(f"sentences must be whole numbers from 1 up, got {wrong[0]!r}")
        if not 0.0 < self.agreement < 1.0:
            raise ValueError(f"agreement must lie between 0 and 1, got {self.agreement}")

    @property
    def most_sentences(self) -> int:
        """Largest number of sentences."""
        return max(n for n, chance in self.sentences.items() if chance > 0)

    @property
    def stop(self) -> np.ndarray:
        """Probability that a review ends after its k-th sentence, given that it has k; shape (K + 1,)."""
        chance = np.array([self.sentences.get(k, 0.0) for k in range(self.most_sentences + 1)])
        left = np.cumsum(chance[::-1])[::-1]
        stop: np.ndarray = chance / left
        return stop

    def polarity_given_label(self) -> np.ndarray:
        """P(polarity of a sentence | label of the review), shape (2 labels, 2 polarities)."""
        same, other = self.agreement, 1.0 - self.agreement
        return np.array([[same, other], [other, same]])

    def opener_chances(self, previous: int | None, polarity: int) -> Mapping[str, float]:
        """Chances of the openers of a sentence after one of polarity `previous` (None: it comes first)."""
        if previous is None:
            return self.openers["first"]
        return self.openers["same" if previous == polarity else "turn"]


def write_out(words: Iterable[str], language: str = "fr") -> str:
    """Join words as people write them: no space after an elision, none before a comma or a full stop.

    French keeps a space before an exclamation mark.

    Examples
    --------
    >>> write_out(["C'", "est", "beau", ",", "l'", "œuvre", "!"])
    "C'est beau, l'œuvre !"
    """
    text = ""
    for word in words:
        glued = not text or text.endswith("'") or word in NO_SPACE_BEFORE[language]
        text += word if glued else " " + word
    return text


def split_up(text: str, known: Iterable[str] = ()) -> list[str]:
    """Split text into words: elided articles and pronouns, words and punctuation marks, each by itself.

    Parameters
    ----------
    text : str
        As people write it, with either kind of apostrophe.
    known : iterable of str
        Words with an apostrophe inside ("chef-d'œuvre") that stay in one piece.

    Examples
    --------
    >>> split_up("Quel chef-d’œuvre ! J'adore l'humour.", known=["chef-d'œuvre"])
    ['Quel', "chef-d'œuvre", '!', "J'", 'adore', "l'", 'humour', '.']
    """
    whole = sorted((word for word in known if "'" in word[:-1]), key=len, reverse=True)
    pattern = "|".join([*map(re.escape, whole), r"[^\W\d_]+(?:-[^\W\d_]+)*'?", r"\S"])
    return re.findall(pattern, text.translate(APOSTROPHES))
