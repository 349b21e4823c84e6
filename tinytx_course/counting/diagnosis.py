"""Which misconceptions explain a wrong parameter count."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from tinytx.config import TransformerConfig
from tinytx.counting import Head

Slips = frozenset[str]

# Slugs by the part of the count that they change, each with a clause in words.
MISCONCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "embedding": {
        "embedding-counted-twice": "the embedding matrix was counted twice",
        "positions-counted-as-learned": "the positions were counted as learned, but they are fixed",
        "positions-forgotten": "the learned positions were forgotten",
    },
    "attention": {
        "attention-as-heads-times-d2": "attention was counted as n_heads · d_model²",
        "heads-for-attention-matrices": (
            "the number of heads was used for the number of matrices in attention, which is 4"
        ),
        "heads-for-qkv-matrices": (
            "the number of heads was used for the number of q, k and v matrices, which is 3"
        ),
        "output-projection-forgotten": "the output projection of attention was forgotten",
        "attention-biases-forgotten": "the biases of attention were forgotten",
    },
    "feed_forward": {
        "feed-forward-forgotten": "the feed-forward network was forgotten",
        "feed-forward-width-4d": "the feed-forward width was taken to be 4 · d_model",
        "heads-for-feed-forward-matrices": (
            "the number of heads was used for the number of feed-forward matrices, which is 2"
        ),
        "feed-forward-biases-forgotten": "the biases of the feed-forward network were forgotten",
    },
    "norms": {
        "norms-forgotten": "the norms were forgotten",
        "block-norms-forgotten": "the norms of the layers were forgotten, all but the final one",
        "norms-counted-once": "one norm was counted in a layer, but there are two",
        "heads-for-norms": "the number of heads was used for the number of norms in a layer, which is 2",
        "norm-shifts-forgotten": "the shifts of the norms were forgotten",
        "final-norm-forgotten": "the final norm was forgotten",
    },
    "all parts": {
        "all-biases-forgotten": (
            "the biases of all linear layers (attention, feed-forward, output) were forgotten"
        ),
        "all-biases-and-shifts-forgotten": "all biases were forgotten, the shifts of the norms included",
        "one-layer-too-few": "one layer too few was counted",
        "one-layer-too-many": "one layer too many was counted",
    },
    "head": {
        "embedding-tied": "the output layer was taken to share the embedding matrix, but it has its own",
        "other-head": "the output layer of the other task was counted",
        "head-bias-forgotten": "the bias of the output layer was forgotten",
    },
}
WORDS = {slug: words for group in MISCONCEPTIONS.values() for slug, words in group.items()}
PARTS = {
    "total": "the total",
    "embedding": "the embedding",
    "attention": "the attention of one layer",
    "feed_forward": "the feed-forward network of one layer",
    "norms": "the norms of one layer",
    "layer": "one layer",
    "head": "the output layer",
}

_ALL_BIASES = ("all-biases-forgotten", "all-biases-and-shifts-forgotten")
# At most one of each row: opposites, and pairs of which one swallows the other.
_EXCLUSIVE = (
    ("embedding-counted-twice", "embedding-tied"),
    (
        "attention-as-heads-times-d2",
        "heads-for-attention-matrices",
        "heads-for-qkv-matrices",
        "output-projection-forgotten",
    ),
    ("attention-as-heads-times-d2", "attention-biases-forgotten"),
    ("feed-forward-forgotten", "feed-forward-width-4d"),
    ("feed-forward-forgotten", "heads-for-feed-forward-matrices"),
    ("feed-forward-forgotten", "feed-forward-biases-forgotten"),
    ("norms-forgotten", "block-norms-forgotten", "norms-counted-once", "heads-for-norms"),
    ("norms-forgotten", "norm-shifts-forgotten"),
    ("norms-forgotten", "final-norm-forgotten"),
    ("one-layer-too-few", "one-layer-too-many"),
    *((*_ALL_BIASES, part) for part in ("attention-biases-forgotten", "feed-forward-biases-forgotten")),
    (*_ALL_BIASES, "head-bias-forgotten"),
    (*_ALL_BIASES, "heads-for-attention-matrices"),  # H · (D² + D) without biases has a name of its own
    ("all-biases-and-shifts-forgotten", "norm-shifts-forgotten"),
    ("all-biases-and-shifts-forgotten", "norms-forgotten"),
)
_OPPOSITES = frozenset(frozenset(pair) for row in _EXCLUSIVE for pair in combinations(row, 2))


def compatible(slips: Slips) -> bool:
    """Whether one person can hold all of these at once: no opposites, none that contains another."""
    return not any(frozenset(pair) in _OPPOSITES for pair in combinations(slips, 2))


@dataclass(frozen=True)
class Question:
    """What is to be counted: a model, or one part of it. Attributes as in `diagnose_count`."""

    config: TransformerConfig
    head: str | None
    n_classes: int
    part: str

    def asks_for(self, group: str) -> bool:
        """Whether a group of ``MISCONCEPTIONS`` concerns the number asked for."""
        in_layer = group in ("attention", "feed_forward", "norms")
        return self.part in ("total", group) or group == "all parts" or (self.part == "layer" and in_layer)

    def slugs(self, group: str) -> tuple[str, ...]:
        """Misconceptions of a group that can change the number asked for."""
        if not self.asks_for(group):
            return ()
        candidates = [*MISCONCEPTIONS[group]]
        if group == self.part == "head" and self.config.tie_embeddings:
            candidates.append("embedding-counted-twice")
        possible = _possible(self)
        return tuple(slug for slug in candidates if possible.get(slug, True))

    def count(self, slips: Slips) -> int:
        """The number that these misconceptions lead to; the right one for none."""
        return sum(self.share(group, slips) for group in _COUNTS)

    def share(self, group: str, slips: Slips) -> int:
        """What a group adds to that number, over all layers."""
        if not self.asks_for(group):
            return 0
        if self.part != "total":
            return _COUNTS[group](self, slips)
        if group == "head":  # an embedding counted twice is counted with the embeddings
            return _head(self, slips - {"embedding-counted-twice"})
        if group == "embedding":
            return _embedding(self, slips)
        n_layers = self.config.n_layers + ("one-layer-too-many" in slips) - ("one-layer-too-few" in slips)
        in_layers = n_layers * _COUNTS[group](self, slips)
        forgotten = slips & {"norms-forgotten", "final-norm-forgotten"}
        if group == "norms" and self.config.norm == "first" and not forgotten:
            return in_layers + _norm(self, slips)
        return in_layers


def _embedding(asked: Question, slips: Slips) -> int:
    config = asked.config
    tokens = config.vocab_size * config.d_model * (1 + ("embedding-counted-twice" in slips))
    tokens += config.n_segments * config.d_model + (_norm(asked, slips) if config.embed_norm else 0)
    learned = config.positions == "learned" and "positions-forgotten" not in slips
    if learned or "positions-counted-as-learned" in slips:
        return tokens + (config.max_len + config.position_offset) * config.d_model
    return tokens


def _attention(asked: Question, slips: Slips) -> int:
    width, n_heads = asked.config.d_model, asked.config.n_heads
    if "attention-as-heads-times-d2" in slips:
        return n_heads * width**2
    n_matrices = 4 - ("output-projection-forgotten" in slips)
    if "heads-for-attention-matrices" in slips:
        n_matrices = n_heads
    elif "heads-for-qkv-matrices" in slips:
        n_matrices = n_heads + 1
    narrower = 2 * (width - asked.config.kv_heads * asked.config.head_dim)  # outputs that are shared
    n_outputs = n_matrices * width - narrower
    return n_outputs * (width + _biased(asked, slips, "attention-biases-forgotten"))


def _feed_forward(asked: Question, slips: Slips) -> int:
    if "feed-forward-forgotten" in slips:
        return 0
    config, width = asked.config, asked.config.d_model
    inner = 4 * width if "feed-forward-width-4d" in slips else config.d_ff
    into = (1 + (config.activation == "swiglu")) * inner  # outputs of what reads the residual stream
    biased = _biased(asked, slips, "feed-forward-biases-forgotten")
    both = width * into + inner * width + biased * (into + width)
    if config.n_experts > 1:
        return config.n_experts * (both + width)  # the router has one row an expert
    return both * config.n_heads // 2 if "heads-for-feed-forward-matrices" in slips else both


def _norms(asked: Question, slips: Slips) -> int:
    if slips & {"norms-forgotten", "block-norms-forgotten"}:
        return 0
    n_norms = asked.config.n_heads if "heads-for-norms" in slips else 2 - ("norms-counted-once" in slips)
    return n_norms * _norm(asked, slips)


def _norm(asked: Question, slips: Slips) -> int:
    plain = slips & {"norm-shifts-forgotten", "all-biases-and-shifts-forgotten"}
    return asked.config.d_model * (2 if _shifted(asked.config) and not plain else 1)


def _shifted(config: TransformerConfig) -> bool:
    return config.bias and config.norm_kind == "layer"


def _head(asked: Question, slips: Slips) -> int:
    head, config = asked.head, asked.config
    if head is None:
        return 0
    if "other-head" in slips:
        head = "lm" if head == "classifier" else "classifier"
    n_outputs = config.vocab_size if head == "lm" else asked.n_classes
    tied = config.tie_embeddings and "embedding-counted-twice" not in slips
    shared = head == "lm" and (tied or "embedding-tied" in slips)
    biased = _head_adds_bias(config, head) and not slips & {"head-bias-forgotten", *_ALL_BIASES}
    return n_outputs * (biased + (0 if shared else config.d_model))


def _head_adds_bias(config: TransformerConfig, head: str) -> bool:
    return config.lm_bias if head == "lm" else config.bias


def _biased(asked: Question, slips: Slips, forgotten: str) -> bool:
    return asked.config.bias and not slips & {forgotten, *_ALL_BIASES}


# What each group adds: the embeddings, a layer's sublayers and norms, the head.
_COUNTS: dict[str, Callable[[Question, Slips], int]] = {
    "embedding": _embedding,
    "attention": _attention,
    "feed_forward": _feed_forward,
    "norms": _norms,
    "head": _head,
}


def _possible(asked: Question) -> dict[str, bool]:
    """When a misconception is one at all; the others always are."""
    config, total, has_head = asked.config, asked.part == "total", asked.head is not None
    bias = config.bias
    several_biases = bias and asked.part in ("total", "layer")
    ends_in_norm = total and config.norm == "first"
    grouped = config.kv_heads < config.n_heads
    two_matrices = config.activation != "swiglu" and config.n_experts == 1
    return {
        "positions-counted-as-learned": config.positions != "learned",
        "positions-forgotten": config.positions == "learned",
        "attention-as-heads-times-d2": not grouped,
        "heads-for-attention-matrices": bias and not grouped,  # without biases it is n_heads · D²
        "heads-for-qkv-matrices": not grouped,
        "attention-biases-forgotten": bias,
        # Half of an odd number of biases is no count.
        "heads-for-feed-forward-matrices": two_matrices
        and (config.n_heads % 2 == 0 or (config.d_model + config.d_ff) % 2 == 0),
        "feed-forward-biases-forgotten": bias,
        "block-norms-forgotten": ends_in_norm,
        "final-norm-forgotten": ends_in_norm,
        "norm-shifts-forgotten": _shifted(config),
        "all-biases-forgotten": several_biases,
        "all-biases-and-shifts-forgotten": several_biases and _shifted(config),
        "one-layer-too-few": total and config.n_layers > 1,
        "one-layer-too-many": total,
        "embedding-tied": has_head and not config.tie_embeddings,
        "other-head": has_head,
        "head-bias-forgotten": asked.head is not None and _head_adds_bias(config, asked.head),
    }


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
    if head not in ("lm", "classifier", None):
        raise ValueError(f"head must be 'lm', 'classifier' or None, got {head!r}")
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    if isinstance(claimed, bool) or not hasattr(claimed, "__index__"):
        raise TypeError(f"claimed must be an integer, got {claimed!r}")
    claimed, asked = operator.index(claimed), Question(config, head, n_classes, part)
    expected = asked.count(frozenset())
    explanations = () if claimed == expected else _smallest(_explanations(asked, claimed), asked)
    return Diagnosis(claimed, expected, part, explanations)


def _explanations(asked: Question, claimed: int) -> Iterator[Slips]:
    """Every set that yields the number, and some that contain a smaller one."""
    choices = {group: _choices(asked, group) for group in _COUNTS}
    for general in _choices(asked, "all parts"):
        # The shares of the groups add up: all sums of one choice from each, an axis for each group.
        shares = [
            np.array([asked.share(group, general | slips) for slips in sets])
            for group, sets in choices.items()
        ]
        for chosen in np.argwhere(reduce(np.add.outer, shares) == claimed):
            yield general.union(*(sets[i] for sets, i in zip(choices.values(), chosen, strict=True)))


def _choices(asked: Question, group: str) -> list[Slips]:
    """All compatible sets within a group, the empty one included."""
    slugs = asked.slugs(group)
    subsets = (frozenset(some) for size in range(len(slugs) + 1) for some in combinations(slugs, size))
    return [slips for slips in subsets if compatible(slips)]


def _smallest(found: Iterator[Slips], asked: Question) -> tuple[Slips, ...]:
    sensible = [slips for slips in found if compatible(slips) and not _says_all_of_one_part(asked, slips)]
    size = min(map(len, sensible), default=0)
    smallest = {slips for slips in sensible if len(slips) == size}
    return tuple(sorted(smallest, key=lambda slips: sorted(map([*WORDS].index, slips))))


def _says_all_of_one_part(asked: Question, slips: Slips) -> bool:
    """Whether "all biases" is claimed where at most one part has any left to forget."""
    if "all-biases-forgotten" not in slips:
        return False
    left = ("attention-as-heads-times-d2" not in slips, "feed-forward-forgotten" not in slips)
    return sum(left) + (asked.head is not None and asked.part == "total") < 2


def _in_words(slips: Slips) -> str:
    *clauses, last = [words for slug, words in WORDS.items() if slug in slips]
    return f"{', '.join(clauses)} and {last}" if clauses else last
