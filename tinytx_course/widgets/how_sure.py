"""The explorer of certainty: what the exact posterior says of a review, word by word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import traitlets

from tinytx_course.engine.gloss import reviews_in_english
from tinytx_course.widgets.base import Explorer, bounded
from tinyworld.reviews import Review
from tinyworld.world import World

_N_DRAWN, _OF, _LONGEST = 4, 60, 36  # reviews, of how many, and their most words


class HowSureExplorer(Explorer):
    """See `how_sure`.

    `log_odds` holds, review after review, the exact log-odds of favourable after 0, 1, ... words, which stay
    precise where P(favourable) is nearly 0 or 1.
    """

    kind = "how_sure"
    title = traitlets.Unicode("How sure can one be?").tag(sync=True)

    reviews = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    english = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)  # word by word
    labels = traitlets.List(traitlets.Int()).tag(sync=True)
    log_odds = traitlets.Bytes().tag(sync=True)
    review = bounded(0, 0, lambda its: len(its.reviews) - 1)
    n_read = bounded(6, 0, lambda its: max(map(len, its.reviews)))

    def summary(self) -> str:
        """Return what is shown, and how far the review is read."""
        length = len(self.reviews[self.review])
        return (
            "The probability that a review is favourable, given its first words, by the exact posterior. "
            f"Review {self.review + 1} of {len(self.reviews)}, {min(self.n_read, length)} of {length} words."
        )


def prefix_log_odds(world: World, words: Sequence[str]) -> np.ndarray:
    """Return log P(label = 1 | first n words) - log P(label = 0 | ...) for n = 0 to T, shape (T + 1,)."""
    chances = np.array(
        [state.hidden.sum(axis=(1, 2)) for state in world.automaton.prefixes(words)]
    )  # (T + 1, 2)
    return np.log(chances[:, 1]) - np.log(chances[:, 0])


def how_sure(*, world: World | None = None) -> HowSureExplorer:
    """Reveal a review word by word: how sure can one be?

    Each word is coloured by its evidence: by how much it moves the log-odds of the exact posterior. The
    reviews are the 4 of 60 of at most 36 words whose exact probability moves most.

    Parameters
    ----------
    world : World, optional
        That the reviews come from; by default ``World()``, the French one.

    Examples
    --------
    >>> explorer = how_sure()
    >>> explorer.summary().split(". ")[1].split(",")[0]
    'Review 1 of 4'
    """
    world = world or World()
    reviews = _turning(world)
    log_odds = np.concatenate([prefix_log_odds(world, review.words) for review in reviews])
    return HowSureExplorer(
        reviews=[list(review.words) for review in reviews],
        english=reviews_in_english(reviews),
        labels=[review.label for review in reviews],
        log_odds=log_odds.astype(np.float32).tobytes(),
    )


def _turning(world: World) -> list[Review]:
    """Reviews whose exact probability moves most."""

    def moves(review: Review) -> float:
        chances = 1 / (1 + np.exp(-prefix_log_odds(world, review.words)))
        return float(np.abs(np.diff(chances)).sum())

    drawn = [review for review in world.reviews(_OF, seed=1) if len(review.words) <= _LONGEST]
    return sorted(drawn, key=moves, reverse=True)[:_N_DRAWN]
