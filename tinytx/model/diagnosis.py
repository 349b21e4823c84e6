"""Name the misconceptions behind a wrong parameter count."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head
from tinytx.model.misconceptions import PARTS, WORDS, Question, Slips, compatible

_NAMES = {
    "total": "the total",
    "embedding": "the embedding",
    "attention": "the attention of one layer",
    "feed_forward": "the feed-forward network of one layer",
    "norms": "the norms of one layer",
    "layer": "one layer",
    "head": "the head",
}


@dataclass(frozen=True)
class Diagnosis:
    """What is behind a count; `str` says it in a sentence, without giving the right number away.

    Attributes
    ----------
    claimed, expected : int
        The number that was given, and the right one.
    part : str
        What was to be counted.
    explanations : tuple of frozenset of str
        All smallest sets of misconceptions that yield the claimed number exactly, by their slugs; empty if
        the number is right, and if nothing explains it.
    """

    claimed: int
    expected: int
    part: str
    explanations: tuple[frozenset[str], ...]

    @property
    def correct(self) -> bool:
        """Whether the number is right."""
        return self.claimed == self.expected

    def __str__(self) -> str:
        name = _NAMES[self.part]
        if self.correct:
            return f"{self.claimed:,} is right for {name}."
        wrong = f"{self.claimed:,} is not right for {name}"
        if not self.explanations:
            return f"{wrong}, and no mistake known here, nor any set of them, gives this number."
        causes = [_in_words(slips) for slips in self.explanations]
        if len(causes) == 1:
            return f"{wrong}: {causes[0]}."
        return f"{wrong}; {len(causes)} explanations give it: {'; or '.join(causes)}."

    def _repr_markdown_(self) -> str:
        return str(self)  # a notebook shows the sentence


def diagnose_count(
    config: TransformerConfig, head: Head | None, claimed: int, part: str = "total", n_classes: int = 2
) -> Diagnosis:
    """Find what somebody must have got wrong to count so many parameters.

    Parameters
    ----------
    config : TransformerConfig
        The model that was to be counted.
    head : {"lm", "classifier"} or None
        Its head.
    claimed : int
        The number found.
    part : str
        "total", "embedding" (positions included), "head", or "attention", "feed_forward", "norms" or "layer",
        which are those of one layer.
    n_classes : int
        C, read for a classifier.

    Returns
    -------
    Diagnosis
        ``.correct``; else ``.explanations`` holds every smallest set of misconceptions that gives the number.
        There may be several: the biases of attention, for instance, weigh as much as two norms.

    Raises
    ------
    TypeError
        If `claimed` is not an integer.
    ValueError
        If `head`, `part` or `n_classes` is not as above.

    Notes
    -----
    Every set of misconceptions that does not contradict itself is considered, of any size. Parts of the count
    add up, so that the sets need not be tried one by one: what embedding and head can amount to is kept in a
    table, and looked up for each thing that the layers can amount to.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> diagnosis = diagnose_count(PRESETS["seed-lab"], "lm", 120_600, part="attention")
    >>> sorted(min(diagnosis.explanations, key=sorted))
    ['heads-for-qkv-matrices']
    >>> print(diagnose_count(PRESETS["seed-lab"], "lm", 80_000, part="feed_forward"))
    80,000 is not right for the feed-forward network of one layer: the biases of the feed-forward network were
    forgotten.
    """
    if head not in ("lm", "classifier", None):
        raise ValueError(f"head must be 'lm', 'classifier' or None, got {head!r}")
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    if isinstance(claimed, bool):
        raise TypeError(f"claimed must be an integer, got {claimed!r}")
    try:
        claimed = operator.index(claimed)
    except TypeError:
        raise TypeError(f"claimed must be an integer, got {claimed!r}") from None
    asked = Question(config, head, n_classes, part)
    expected = asked.count(frozenset())
    explanations = () if claimed == expected else _smallest(_explanations(asked, claimed), asked)
    return Diagnosis(claimed, expected, part, explanations)


def _explanations(asked: Question, claimed: int) -> Iterator[Slips]:
    """Every set that yields the number, and some that contain a smaller one."""
    for general in _choices(asked, "all parts"):
        n_layers = asked.n_layers(general)
        outside = defaultdict(list)  # by what embedding and head amount to
        embeddings, heads = _values(asked, "embedding", general), _values(asked, "head", general)
        for (in_embedding, embedding), (in_head, head) in product(embeddings, heads):
            outside[embedding + head].append(general | in_embedding | in_head)
        attentions = _values(asked, "attention", general)
        feed_forwards = _values(asked, "feed_forward", general)
        for in_norms, norms in _values(asked, "norms", general):
            rest = claimed - n_layers * norms - asked.final_norm(general | in_norms)
            for (in_attention, attention), (in_ff, feed_forward) in product(attentions, feed_forwards):
                for slips in outside.get(rest - n_layers * (attention + feed_forward), ()):
                    yield slips | in_norms | in_attention | in_ff


def _choices(asked: Question, group: str) -> list[Slips]:
    """What somebody may have got wrong within a group: nothing, or any slips that go together."""
    slugs = asked.slugs(group)
    subsets = (frozenset(some) for size in range(len(slugs) + 1) for some in combinations(slugs, size))
    return [slips for slips in subsets if compatible(slips)]


def _values(asked: Question, part: str, general: Slips) -> list[tuple[Slips, int]]:
    return [(slips, asked.part_count(part, general | slips)) for slips in _choices(asked, part)]


def _smallest(found: Iterator[Slips], asked: Question) -> tuple[Slips, ...]:
    sensible = [slips for slips in found if compatible(slips) and not _says_all_of_one_part(asked, slips)]
    size = min(map(len, sensible), default=0)
    order = list(WORDS)
    smallest = {slips for slips in sensible if len(slips) == size}
    return tuple(sorted(smallest, key=lambda slips: sorted(map(order.index, slips))))


def _says_all_of_one_part(asked: Question, slips: Slips) -> bool:
    """Whether all biases are said to be forgotten where at most one part has any left to forget."""
    if "all-biases-forgotten" not in slips:
        return False
    left = (
        "attention-as-heads-times-d2" not in slips,
        "feed-forward-forgotten" not in slips,
        asked.head is not None and asked.part == "total",
    )
    return sum(left) < 2


def _in_words(slips: Slips) -> str:
    clauses = [words for slug, words in WORDS.items() if slug in slips]
    return " and ".join([", ".join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)
