"""Lesson 13, faster and larger: layers by formula, profile, lines of stored benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tinytx.config import TransformerConfig
from tinytx.tokenizer import Tokenizer
from tinytx_course.counting.costs import cost_table
from tinytx_course.labs.profiling import PRODUCTS, REST, profile
from tinytx_course.labs.roofline import NORM_FLOPS, layers_of
from tinytx_run.corpora import Corpus
from tinytx_run.pretrain import train_tokenizer
from tinytx_run.recipes import corpus_kind

__all__ = ["PRODUCTS", "layers_of", "on_paper", "profile", "ratio", "said", "speed_line", "tokenizer_for"]


def tokenizer_for(corpus: Corpus, vocab_size: int, n_texts: int = 3000) -> Tokenizer:
    """A tokenizer of at most so many tokens, from the first training texts; few words need fewer."""
    return train_tokenizer(corpus.train.texts[:n_texts], vocab_size, exact=False, kind=corpus_kind(corpus))


def on_paper(config: TransformerConfig, *, batch_size: int, seq_len: int) -> dict[str, int]:
    """Operations of a training step by the kinds of a profile: thrice those forward, and the update.

    Products and attention are those of the cost table, all others are an estimate.
    """
    costs = cost_table(config, batch_size=batch_size, seq_len=seq_len)
    n_tokens, width, n_layers = batch_size * seq_len, config.d_model, config.n_layers
    attention = n_layers * 4 * n_tokens * seq_len * width
    forward = {
        PRODUCTS: costs.flops_forward - attention,
        "fused attention": attention,  # scores, softmax and sums in one call
        "softmax and loss": 5 * n_tokens * config.vocab_size,
        "norms": NORM_FLOPS * n_tokens * width * (2 * n_layers + 1),
        REST: n_tokens * (10 * config.d_ff + 2 * width) * n_layers,
    }
    return {kind: 3 * n for kind, n in forward.items()} | {"optimizer": 12 * costs.parameters.total}


def ratio(slow: Sequence[float], fast: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """How many times as long one takes as the other, round by round: the median, and the range.

    Examples
    --------
    >>> ratio([4.0, 9.0, 8.0], [2.0, 3.0, 2.0])
    (3.0, (2.0, 4.0))
    """
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return median(ratios), (min(ratios), max(ratios))


def said(middle: float, ends: tuple[float, float]) -> str:
    """A median and its range as text.

    Examples
    --------
    >>> said(3.0, (2.0, 4.0))
    '3.00 (range 2.00 to 4.00)'
    """
    return f"{middle:.2f} (range {ends[0]:.2f} to {ends[1]:.2f})"


def speed_line(key: str, record: Mapping[str, Any]) -> str:
    """One comparison of speed of ``results/bench-*.json``, in a line.

    Examples
    --------
    >>> peer = {"name": "peer", "median": 1.5, "low": 1.25, "high": 2.0}
    >>> speed_line("a step", {"fastest": {"equal precision": peer}})
    'a step: 1.50 [1.25, 2.00] times as fast as peer (equal precision)'
    """
    parts = [
        f"{each['median']:.2f} [{each['low']:.2f}, {each['high']:.2f}] times as fast as {each['name']}"
        + ("" if group in each["name"] else f" ({group})")
        for group, each in record["fastest"].items()
    ]
    left_out = f"; left out: {', '.join(record['left_out'])}" if record.get("left_out") else ""
    return f"{key}: {'; '.join(parts)}{left_out}"
