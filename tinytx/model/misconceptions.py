"""Ways to get a parameter count wrong, and what each of them makes of the parts of a model.

Shape letters: V vocabulary, D model width, F feed-forward width, H heads, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

from tinytx.model.config import TransformerConfig

Slips = frozenset[str]

# Slugs by the part of the count that they change, each with the clause that says it.
MISCONCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "embedding": {
        "embedding-counted-twice": "the embedding matrix was counted twice",
        "positions-counted-as-learned": "the positions were counted as learned, but nothing in them is",
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
    """Say whether one person can hold all of these at once: no opposites, none swallowed by another.

    Examples
    --------
    >>> compatible(frozenset({"norms-forgotten", "norms-counted-once"}))
    False
    """
    return not any(frozenset(pair) in _OPPOSITES for pair in combinations(slips, 2))


@dataclass(frozen=True)
class Question:
    """What is to be counted: a model, or one part of it.

    Attributes
    ----------
    config : TransformerConfig
        Settings of the model.
    head : str or None
        "lm", "classifier" or None.
    n_classes : int
        C.
    part : str
        One of ``PARTS``; "attention", "feed_forward", "norms" and "layer" are those of one layer.
    """

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
        """The number that somebody finds who holds these misconceptions; the right one for none."""
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
    "all-biases-forgotten": lambda asked: asked.config.bias and asked.part in ("total", "layer"),
    "all-biases-and-shifts-forgotten": lambda asked: asked.config.bias and asked.part in ("total", "layer"),
}
