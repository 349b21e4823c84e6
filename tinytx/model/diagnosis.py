"""Which misconceptions explain a wrong parameter count; the report of ``tinytx count``."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head, ParameterTable, build_empty, count_parameters, parameter_table

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
            "the biases of all linear maps (attention, feed-forward, head) were forgotten"
        ),
        "all-biases-and-shifts-forgotten": "all biases were forgotten, the shifts of the norms included",
        "one-layer-too-few": "one layer too few was counted",
        "one-layer-too-many": "one layer too many was counted",
    },
    "head": {
        "embedding-tied": "the head was taken to share the embedding matrix, but it has its own",
        "other-head": "the head of the other task was counted",
        "head-bias-forgotten": "the bias of the head was forgotten",
    },
}
WORDS = {slug: words for group in MISCONCEPTIONS.values() for slug, words in group.items()}
PARTS = ("total", "embedding", "attention", "feed_forward", "norms", "layer", "head")

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
    """Whether one person can hold all of these at once: no opposites, none that contains another.

    Examples
    --------
    >>> compatible(frozenset({"norms-forgotten", "norms-counted-once"}))
    False
    """
    return not any(frozenset(pair) in _OPPOSITES for pair in combinations(slips, 2))


@dataclass(frozen=True)
class Question:
    """What is to be counted: a model, or one part of it. Attributes as in `diagnose_count`."""

    config: TransformerConfig
    head: str | None
    n_classes: int
    part: str

    def asks_for(self, part: str) -> bool:
        """Whether a part belongs to the number asked for."""
        in_layer = part in ("attention", "feed_forward", "norms")
        return self.part in ("total", part) or (self.part == "layer" and in_layer)

    def slugs(self, group: str) -> tuple[str, ...]:
        """Misconceptions of a group of ``MISCONCEPTIONS`` that can change the number asked for."""
        if group == "head" and self.part == "head" and self.config.tie_embeddings:
            candidates = [*MISCONCEPTIONS["head"], "embedding-counted-twice"]
        else:
            candidates = list(MISCONCEPTIONS[group])
        if group != "all parts" and not self.asks_for(group):
            return ()
        return tuple(slug for slug in candidates if _CONDITIONS.get(slug, lambda asked: True)(self))

    def n_layers(self, slips: Slips) -> int:
        """How many layers are counted."""
        if self.part != "total":
            return 1
        return self.config.n_layers + ("one-layer-too-many" in slips) - ("one-layer-too-few" in slips)

    def final_norm(self, slips: Slips) -> int:
        """Count of the norm after the last layer, where there is one."""
        left_out = self.config.norm == "last" or self.part != "total"
        if left_out or slips & {"norms-forgotten", "final-norm-forgotten"}:
            return 0
        return _norm(self, slips)

    def part_count(self, part: str, slips: Slips) -> int:
        """Count of one part under misconceptions, 0 where it is not asked for."""
        return _COUNTS[part](self, slips) if self.asks_for(part) else 0

    def count(self, slips: Slips) -> int:
        """The number that these misconceptions lead to; the right one for none."""
        layer = sum(self.part_count(part, slips) for part in ("attention", "feed_forward", "norms"))
        # An embedding counted twice is counted with the embeddings, unless the head alone is asked for.
        head = self.part_count("head", slips - {"embedding-counted-twice"} if self.part == "total" else slips)
        embedding = self.part_count("embedding", slips)
        return embedding + self.n_layers(slips) * layer + self.final_norm(slips) + head


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
    return n_matrices * (width**2 + _biased(asked, slips, "attention-biases-forgotten") * width)


def _feed_forward(asked: Question, slips: Slips) -> int:
    if "feed-forward-forgotten" in slips:
        return 0
    width = asked.config.d_model
    inner = 4 * width if "feed-forward-width-4d" in slips else asked.config.d_ff
    biased = _biased(asked, slips, "feed-forward-biases-forgotten")
    both = 2 * width * inner + biased * (inner + width)
    return both * asked.config.n_heads // 2 if "heads-for-feed-forward-matrices" in slips else both


def _norms(asked: Question, slips: Slips) -> int:
    if slips & {"norms-forgotten", "block-norms-forgotten"}:
        return 0
    n_norms = asked.config.n_heads if "heads-for-norms" in slips else 2 - ("norms-counted-once" in slips)
    return n_norms * _norm(asked, slips)


def _norm(asked: Question, slips: Slips) -> int:
    plain = slips & {"norm-shifts-forgotten", "all-biases-and-shifts-forgotten"}
    return asked.config.d_model * (2 if asked.config.bias and not plain else 1)


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


_COUNTS: dict[str, Callable[[Question, Slips], int]] = {
    "embedding": _embedding,
    "attention": _attention,
    "feed_forward": _feed_forward,
    "norms": _norms,
    "head": _head,
}


def _has_bias(asked: Question) -> bool:
    return asked.config.bias


def _has_bias_in_several_parts(asked: Question) -> bool:
    return asked.config.bias and asked.part in ("total", "layer")


def _ends_in_norm(asked: Question) -> bool:
    return asked.part == "total" and asked.config.norm == "first"


# When a misconception is one at all; the others always are.
_CONDITIONS: dict[str, Callable[[Question], bool]] = {
    "positions-counted-as-learned": lambda asked: asked.config.positions != "learned",
    "positions-forgotten": lambda asked: asked.config.positions == "learned",
    "heads-for-attention-matrices": _has_bias,  # without biases it is n_heads · D²
    "heads-for-feed-forward-matrices": lambda asked: (  # half of an odd number of biases is no count
        asked.config.n_heads % 2 == 0 or (asked.config.d_model + asked.config.d_ff) % 2 == 0
    ),
    "block-norms-forgotten": _ends_in_norm,
    "final-norm-forgotten": _ends_in_norm,
    "one-layer-too-few": lambda asked: asked.part == "total" and asked.config.n_layers > 1,
    "one-layer-too-many": lambda asked: asked.part == "total",
    "embedding-tied": lambda asked: asked.head is not None and not asked.config.tie_embeddings,
    "other-head": lambda asked: asked.head is not None,
    "head-bias-forgotten": lambda asked: asked.head is not None and _head_adds_bias(asked.config, asked.head),
    "attention-biases-forgotten": _has_bias,
    "feed-forward-biases-forgotten": _has_bias,
    "norm-shifts-forgotten": _has_bias,
    "all-biases-forgotten": _has_bias_in_several_parts,
    "all-biases-and-shifts-forgotten": _has_bias_in_several_parts,
}


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
    """What explains a count; `str` puts it in a sentence that does not give the right number away.

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
    """Find the misconceptions that lead to a parameter count.

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
        There may be several: attention, for instance, has as many biases as two norms have parameters.

    Raises
    ------
    TypeError
        If `claimed` is not an integer.
    ValueError
        If `head`, `part` or `n_classes` is not as above.

    Notes
    -----
    Every compatible set of misconceptions is considered, of any size. Parts of the count add up, so the sets
    are not tried one by one: what embedding and head can amount to is stored in a table, and looked up for
    each count that the layers can have.

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
    """All compatible sets within a group, the empty one included."""
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
    """Whether "all biases" is claimed where at most one part has any left to forget."""
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


@dataclass(frozen=True)
class CountReport:
    """The closed form of a parameter count, the count of the model built, and the diagnosis of a claim."""

    config: TransformerConfig
    head: str | None
    table: ParameterTable
    numel: int
    diagnosis: Diagnosis | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        answer: dict[str, Any] = {
            "head": self.head,
            "total": self.table.total,
            "numel": self.numel,
            "rows": [asdict(row) | {"total": row.total} for row in self.table.rows],
            "proportions": {kind: n / self.table.total for kind, n in self.table.kinds.items()},
        }
        if self.diagnosis is not None:
            answer["diagnosis"] = {
                "claimed": self.diagnosis.claimed,
                "part": self.diagnosis.part,
                "correct": self.diagnosis.correct,
                "explanations": [sorted(slips) for slips in self.diagnosis.explanations],
                "sentence": str(self.diagnosis),
            }
        return answer | {"config": self.config.to_dict()}

    def __str__(self) -> str:
        lines = [str(self.table), f"numel of the model built: {self.numel:,}", "", self.table.proportions()]
        return "\n".join(lines if self.diagnosis is None else [*lines, "", str(self.diagnosis)])


def count_report(
    config: TransformerConfig,
    head: Head | None = "lm",
    n_classes: int = 2,
    claimed: int | None = None,
    part: str = "total",
) -> CountReport:
    """Count a model by closed form and by numel, and diagnose a claimed number.

    Parameters and errors as in `parameter_table` and `diagnose_count`.
    """
    diagnosis = None if claimed is None else diagnose_count(config, head, claimed, part, n_classes)
    numel = count_parameters(build_empty(config, head, n_classes))
    return CountReport(config, head, parameter_table(config, head, n_classes), numel, diagnosis)
