"""Terms of what a transformer costs, in letters.

Shape letters: B rows of a batch, T tokens, D model width, H heads, F feed-forward width, V vocabulary,
C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tinytx.model.config import TransformerConfig
from tinytx.model.terms import Term

CostHead = Literal["lm", "classifier"]
AttentionPath = Literal["fused", "plain"]

BYTES_PER_ID = 8  # token ids and targets are 64-bit integers


def flops_terms(head: CostHead | None) -> Iterator[Term]:
    """Terms of the operations of one forward pass."""
    yield from attention_flops("blocks")
    yield Term("blocks", "feed_forward", "up_proj", "2·B·T·D·F")
    yield Term("blocks", "feed_forward", "down_proj", "2·B·T·F·D")
    if head == "lm":
        yield Term("head", "head", "lm_head", "2·B·T·D·V")
    elif head == "classifier":
        yield Term("head", "head", "class_head", "2·B·D·C")


def attention_flops(part: str) -> Iterator[Term]:
    """Terms of one self-attention: its maps, and what all pairs of tokens take."""
    yield Term(part, "attention", "q_proj, k_proj, v_proj", "3·2·B·T·D·D")
    yield Term(part, "attention", "scores", "2·B·T·T·D")
    yield Term(part, "attention", "weighted sums", "2·B·T·T·D")
    yield Term(part, "attention", "out_proj", "2·B·T·D·D")


def activation_terms(
    config: TransformerConfig, head: CostHead | None, path: AttentionPath, w: int
) -> Iterator[Term]:
    """Terms of the bytes that a forward pass keeps, at w bytes a number."""
    one_norm = f"{w}·B·T·D + 2·{w}·B·T"  # what came in; its mean and spread
    # GELU and SiLU need what came in, ReLU only what it returns, which down_proj keeps anyway.
    inner = 1 if config.activation == "relu" else 2
    yield Term("embeddings", "embeddings", "token_ids", f"{BYTES_PER_ID}·B·T")
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm", one_norm)
    yield Term("blocks", "norms", "attn_norm", one_norm)
    yield from attention_activations("blocks", w, path, config.causal)
    if path == "fused":
        yield from _position_activations(config, w)
    yield Term("blocks", "norms", "ff_norm", one_norm)
    yield Term("blocks", "feed_forward", "into up_proj", f"{w}·B·T·D")
    yield Term("blocks", "feed_forward", "inner", f"{inner}·{w}·B·T·F")
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm", one_norm)
    if head == "lm":
        yield Term("head", "head", "into lm_head", f"{w}·B·T·D")
        yield Term("head", "head", "log-probabilities", f"{w}·B·T·V")
        yield Term("head", "head", "targets, count", f"{BYTES_PER_ID}·B·T + {w}")
    elif head == "classifier":
        yield Term("head", "head", "pooling", f"B·T + {BYTES_PER_ID}·B")
        yield Term("head", "head", "into class_head", f"{w}·B·D")
        yield Term("head", "head", "log-probabilities", f"{w}·B·C")
        yield Term("head", "head", "targets, count", f"{BYTES_PER_ID}·B + {w}")


def _position_activations(config: TransformerConfig, w: int) -> Iterator[Term]:
    """Terms of what positions inside fused attention add; the plain path has to form the scores anyway."""
    alibi = config.positions == "alibi"
    if alibi:
        yield Term("blocks", "attention", "biases of the scores", f"{w}·H·T·T" + " + T" * config.causal)
    # What the kernel returned is kept as well as what is made of it: queries that may see nothing are set to
    # zero; after rotary positions the heads lie in another order, and are copied to be merged.
    if (alibi and config.causal) or (config.positions == "rotary" and config.n_heads > 1):
        yield Term("blocks", "attention", "out of the kernel", f"{w}·B·T·D")


def attention_activations(part: str, w: int, path: AttentionPath, causal: bool) -> Iterator[Term]:
    """Terms of what one self-attention keeps, at w bytes a number."""
    yield Term(part, "attention", "into q, k, v", f"{w}·B·T·D")
    yield Term(part, "attention", "q, k, v", f"3·{w}·B·T·D")
    if path == "fused":
        yield Term(part, "attention", "log-sums of scores", f"{w}·B·H·T")
    elif causal:  # before and after the mask made zeros, and the mask itself, one byte a cell, twice
        yield Term(part, "attention", "attn_weights, masks", f"2·{w}·B·H·T·T + 2·T·T")
    else:
        yield Term(part, "attention", "attn_weights", f"{w}·B·H·T·T")
    yield Term(part, "attention", "into out_proj", f"{w}·B·T·D")


def cache_terms(w: int) -> Iterator[Term]:
    """Terms of the bytes of keys and values in all layers, at w bytes a number."""
    yield Term("blocks", "attention", "keys, values", f"2·{w}·B·T·D")
