"""Which misconceptions explain a wrong parameter count: a misconception is an edit of the closed form."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import combinations

import numpy as np

from tinytx.config import TransformerConfig
from tinytx.counting import Head, parameter_table
from tinytx.settings import check_whole, require
from tinytx_course.results import tables_of

Slips = frozenset[str]
Terms = tuple[tuple[str, str], ...]  # "part asked for:name" and formula, as ("total:ff_norm", "2·D")

#: By the part of the count that they change, then by slug: ``words``, a clause, and ``edits`` of terms.
MISCONCEPTIONS = tables_of("counting/misconceptions.toml")
WORDS = {slug: one["words"] for group in MISCONCEPTIONS.values() for slug, one in group.items()}
# What all parts have in common is edited first, so what one part has left is known.
_EDITS = {
    slug: one["edits"]
    for group in sorted(MISCONCEPTIONS, key="all parts".__ne__)
    for slug, one in MISCONCEPTIONS[group].items()
}
_ORDER = list(_EDITS)
PARTS = {
    "total": "the total",
    "embedding": "the embedding",
    "attention": "the attention of one layer",
    "feed_forward": "the feed-forward network of one layer",
    "norms": "the norms of one layer",
    "layer": "one layer",
    "head": "the output layer",
}


@lru_cache(2**12)
def _is_possible(slug: str, terms: Terms) -> bool:
    return all(
        any(re.search(names, name) and re.search(what, formula) for name, formula in terms)
        for names, what, _ in _EDITS[slug]
    )


@lru_cache(2**12)
def _edited(terms: Terms, slips: Slips) -> Terms:
    """The terms after some slips; one that finds nothing left to edit changes nothing."""
    if not slips:
        return terms
    last = max(slips, key=_ORDER.index)
    terms = _edited(terms, slips - {last})
    for names, what, new in _EDITS[last] if _is_possible(last, terms) else ():
        terms = tuple(
            (name, re.sub(what, new, formula) if re.search(names, name) else formula)
            for name, formula in terms
        )
    return terms


@dataclass(frozen=True)
class Question:
    """What is to be counted: a model, or one part of it. Attributes as in `diagnose_count`."""

    config: TransformerConfig
    head: Head | None
    n_classes: int
    part: str

    @cached_property
    def _sizes(self) -> dict[str, float]:
        config = self.config
        sizes = {"V": config.vocab_size, "D": config.d_model, "F": config.d_ff, "C": self.n_classes}
        sizes |= {"K": config.head_dim, "H": config.n_heads, "n_kv_heads": config.kv_heads}
        names = ("n_layers", "n_experts", "max_len", "n_segments", "position_offset")
        return {**sizes, **{name: getattr(config, name) for name in names}, "half_H": config.n_heads / 2}

    @cached_property
    def _with_other_head(self) -> Question:
        return replace(self, head="lm" if self.head == "classifier" else "classifier")

    @cached_property
    def _rows(self) -> list[tuple[str, bool, str, str]]:
        """Group, whether it is in every layer, name and formula of each term; first, the number of layers."""
        is_total = self.part == "total"
        rows = [("all parts", False, f"{self.part}:n_layers", "n_layers" if is_total else "1")]
        for row in parameter_table(self.config, self.head, self.n_classes).rows:
            in_layers = row.part == "blocks"
            group = {"embeddings": "embedding", "head": "head"}.get(row.part, row.kind)
            asked = group == self.part and row.part != "final_norm"
            if is_total or asked or (self.part == "layer" and in_layers):
                group = "norms" if is_total and row.kind == "norms" else group  # one may follow embeddings
                rows.append((group, in_layers, f"{self.part}:{row.name}", row.formula))
        return rows

    @cached_property
    def terms(self) -> Terms:
        """What is counted, in letters."""
        return tuple((name, formula) for *_, name, formula in self._rows)

    def slugs(self, group: str) -> tuple[str, ...]:
        """Misconceptions of a group that can change the number asked for."""
        candidates = [*MISCONCEPTIONS[group]]
        if self.part == "head":  # a tied matrix may be counted once more with the head
            candidates = {"head": [*candidates, "embedding-counted-twice"], "embedding": []}.get(group, [])
        terms = self.terms if self.head is None else self.terms + self._with_other_head.terms
        odd = self.config.n_heads % 2 and (self.config.d_model + self.config.d_ff) % 2
        no_count = {  # half of an odd number of biases, or three matrices; no layer at all
            "heads-for-feed-forward-matrices": odd or self.config.activation == "swiglu",
            "one-layer-too-few": self.config.n_layers == 1,
        }
        return tuple(
            slug for slug in candidates if _is_possible(slug, terms) and not no_count.get(slug, False)
        )

    def count(self, slips: Slips) -> int:
        """The number that these misconceptions lead to; the right one for none."""
        return sum(self.share(group, slips) for group in MISCONCEPTIONS)

    def share(self, group: str, slips: Slips) -> int:
        """What a group adds to that number, over all layers."""
        asked = self._with_other_head if "other-head" in slips else self
        (_, times), *terms = _edited(asked.terms, slips)
        n_layers, total = self._value(times), 0.0
        for (of_group, in_layers, *_), (_, formula) in zip(asked._rows[1:], terms, strict=True):
            if of_group == group:
                total += self._value(formula) * (n_layers if in_layers else 1)
        return int(total)

    def _value(self, formula: str) -> float:
        factor, _, summands = formula.rpartition("·(")
        products = [each.split("·") for each in summands.rstrip(")").split(" + ") if each]
        value = sum(math.prod(self._size(letter) for letter in letters) for letters in products)
        return value * (self._size(factor) if factor else 1)

    def _size(self, letter: str) -> float:
        return self._sizes[letter] if letter in self._sizes else int(letter)


@dataclass(frozen=True)
class Diagnosis:
    """What explains a count; `str` puts it in a sentence that does not give the right number away.

    `explanations` are all smallest sets of misconceptions that yield the claimed number exactly, by their
    slugs; none if the number is right, and if nothing explains it.
    """

    claimed: int
    expected: int
    part: str
    explanations: tuple[Slips, ...]

    @property
    def correct(self) -> bool:
        """Whether the number is right."""
        return self.claimed == self.expected

    def __str__(self) -> str:
        name = PARTS[self.part]
        if self.correct:
            return f"{self.claimed:,} is right for {name}."
        wrong = f"{self.claimed:,} is not right for {name}"
        if not self.explanations:
            return f"{wrong}, and no mistake known here, nor any set of them, gives this number."
        causes = [_in_words(slips) for slips in self.explanations]
        if len(causes) == 1:
            return f"{wrong}: {causes[0]}."
        return f"{wrong}; {len(causes)} explanations give it: {'; or '.join(causes)}."

    _repr_markdown_ = __str__  # a notebook shows the sentence


def diagnose_count(
    config: TransformerConfig, head: Head | None, claimed: int, part: str = "total", n_classes: int = 2
) -> Diagnosis:
    """Find the misconceptions that lead to a parameter count.

    Parameters
    ----------
    config, head, n_classes
        The model that was to be counted, as in `parameter_table`; only the heads "lm" and "classifier".
    claimed : int
        The number found.
    part : str
        "total", "embedding" (positions included), "head", or "attention", "feed_forward", "norms" or "layer",
        which are those of one layer.

    Returns
    -------
    Diagnosis
        ``.correct``; else ``.explanations`` holds every smallest set of misconceptions that gives the number.
        There may be several: attention, for instance, has as many biases as two norms have parameters.

    Notes
    -----
    Every compatible set of misconceptions is considered, of any size.

    Examples
    --------
    >>> from tinytx.config import PRESETS
    >>> diagnosis = diagnose_count(PRESETS["seed-lab"], "lm", 120_600, part="attention")
    >>> sorted(min(diagnosis.explanations, key=sorted))
    ['heads-for-qkv-matrices']
    >>> print(diagnose_count(PRESETS["seed-lab"], "lm", 80_000, part="feed_forward"))
    80,000 is not right for the feed-forward network of one layer: the biases of the feed-forward network were
    forgotten.
    """
    require(head in ("lm", "classifier", None), "head must be 'lm', 'classifier' or None", repr(head))
    require(part in PARTS, f"part must be one of {', '.join(PARTS)}", repr(part))
    check_whole("n_classes", n_classes, 1)
    if isinstance(claimed, bool) or not hasattr(claimed, "__index__"):
        raise TypeError(f"claimed must be an integer, got {claimed!r}")
    claimed, asked = operator.index(claimed), Question(config, head, n_classes, part)
    expected = asked.count(frozenset())
    explanations = () if claimed == expected else _smallest(_explanations(asked, claimed), asked)
    return Diagnosis(claimed, expected, part, explanations)


def _explanations(asked: Question, claimed: int) -> Iterator[Slips]:
    """Every set that yields the number, but for those with a slip that changes nothing."""
    groups = [group for group in MISCONCEPTIONS if group != "all parts"]
    terms = asked.terms, asked._with_other_head.terms
    slugs = {group: asked.slugs(group) for group in MISCONCEPTIONS}
    for general in _effective(terms, slugs["all parts"]):
        # The shares of the groups add up: all sums of one choice from each, an axis for each group.
        choices = [_effective(terms, slugs[group], general) for group in groups]
        shares = [
            np.array([asked.share(group, slips) for slips in sets])
            for group, sets in zip(groups, choices, strict=True)
        ]
        for chosen in np.argwhere(reduce(np.add.outer, shares) == claimed):
            yield general.union(*(sets[i] for sets, i in zip(choices, chosen, strict=True)))


@lru_cache(2**12)
def _effective(
    terms: tuple[Terms, Terms], slugs: tuple[str, ...], general: Slips = frozenset()
) -> list[Slips]:
    """All sets of some slips, with general ones, without those that a part of them equals."""
    found: dict[Slips, Terms] = {}
    for some in (some for n in range(len(slugs) + 1) for some in combinations(slugs, n)):
        slips = general.union(some)
        edited = _edited(terms["other-head" in slips], slips)
        if not any(fewer < slips and edited == found[fewer] for fewer in found):
            found[slips] = edited
    return list(found)


def _smallest(found: Iterator[Slips], asked: Question) -> tuple[Slips, ...]:
    sensible = [slips for slips in found if not _says_too_much(asked, slips)]
    size = min(map(len, sensible), default=0)
    smallest = {slips for slips in sensible if len(slips) == size}
    return tuple(sorted(smallest, key=lambda slips: sorted(map([*WORDS].index, slips))))


def _says_too_much(asked: Question, slips: Slips) -> bool:
    """Whether "all biases" or shifts are said to be forgotten where at most one part has any left."""
    if {"all-biases-and-shifts-forgotten", "norms-forgotten"} <= slips:
        return True
    if "all-biases-forgotten" not in slips:
        return False
    left = ("attention-as-heads-times-d2" not in slips, "feed-forward-forgotten" not in slips)
    return sum(left) + (asked.head is not None and asked.part == "total") < 2


def _in_words(slips: Slips) -> str:
    *clauses, last = [words for slug, words in WORDS.items() if slug in slips]
    return f"{', '.join(clauses)} and {last}" if clauses else last
