"""What a transformer costs: operations and memory, from its settings alone.

Shape letters: B rows of a batch, T tokens, D model width, H heads, F feed-forward width, V vocabulary,
C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import LAYERED, ParameterRow, ParameterTable, Term, make_table, parameter_table

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
    """Terms of the bytes that a forward pass saves, at w bytes a number."""
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


BACKWARD = 2  # backward operations for one forward: the gradient of the input, and that of the weight
MOMENTS = 2  # numbers that Adam stores for each parameter


@dataclass(frozen=True)
class CostTable:
    """Operations and memory of one model on one batch; `str` lays all terms out as a table.

    A multiply-add counts as two operations. Each of the four tables has the rows, `.total`, `.parts` and
    `.kinds` of a `ParameterTable`.

    Attributes
    ----------
    parameters : ParameterTable
        In numbers.
    flops : ParameterTable
        Floating-point operations of one forward pass.
    activations : ParameterTable
        Bytes that the forward pass keeps for the backward pass, parameters not among them.
    kv_cache : ParameterTable
        Bytes of keys and values that a generating model keeps, with the context full.
    bytes_per_number : int
        4 for float32, 2 for bfloat16.
    """

    parameters: ParameterTable
    flops: ParameterTable
    activations: ParameterTable
    kv_cache: ParameterTable
    bytes_per_number: int = 4

    @property
    def flops_forward(self) -> int:
        """Operations of one forward pass."""
        return self.flops.total

    @property
    def flops_training(self) -> int:
        """Operations of one step, forward and backward; the optimizer's few per parameter are left out."""
        return (1 + BACKWARD) * self.flops.total

    @property
    def bytes_parameters(self) -> int:
        """Bytes of the parameters; their gradients take as many again."""
        return self.bytes_per_number * self.parameters.total

    @property
    def bytes_optimizer(self) -> int:
        """Bytes of Adam's two moments."""
        return MOMENTS * self.bytes_parameters

    @property
    def bytes_activations(self) -> int:
        """Bytes saved in the forward pass for the backward pass."""
        return self.activations.total

    @property
    def bytes_kv_cache(self) -> int:
        """Bytes of keys and values stored in generation."""
        return self.kv_cache.total

    @property
    def bytes_training(self) -> int:
        """Bytes held at the end of a forward pass: parameters, gradients, optimizer, activations."""
        return 2 * self.bytes_parameters + self.bytes_optimizer + self.bytes_activations

    @property
    def bytes_generating(self) -> int:
        """Bytes of parameters and KV cache."""
        return self.bytes_parameters + self.bytes_kv_cache

    def __str__(self) -> str:
        sections = {
            "operations, forward": self.flops.rows,
            "bytes kept for the backward pass": self.activations.rows,
            "bytes of the key-value cache": self.kv_cache.rows,
        }
        totals = {
            "operations, forward and backward": self.flops_training,
            "bytes of parameters": self.bytes_parameters,
            "bytes of gradients": self.bytes_parameters,
            "bytes of the optimizer": self.bytes_optimizer,
            "bytes held in training": self.bytes_training,
            "bytes held in generation": self.bytes_generating,
        }
        return _layout(sections, totals)


def cost_table(
    config: TransformerConfig,
    head: CostHead | None = "lm",
    *,
    batch_size: int,
    seq_len: int,
    n_classes: int = 2,
    attention: AttentionPath = "fused",
    bytes_per_number: int = 4,
) -> CostTable:
    """Compute what a model costs on a batch, without building it.

    A linear layer from D to F takes ``2·B·T·D·F`` operations for B·T vectors, attention ``4·B·T·T·D`` on top
    of its four projections. The backward pass takes twice the forward: each product has two gradients.

    Parameters
    ----------
    config : TransformerConfig
        The settings. Dropout is taken as 0: the masks it saves would come on top.
    head : {"lm", "classifier"} or None
        The head, with its loss (cross-entropy); a classifier pools by the mean.
    batch_size, seq_len : int
        B and T; all B·T tokens are real.
    n_classes : int
        C, read for a classifier.
    attention : {"fused", "plain"}
        "fused" as in `fused_attention`: the weights are not saved but computed again in the backward pass.
        "plain" as in `attention`: they are saved, T·T of them for each head.
    bytes_per_number : int
        4 for float32; with another size the numbers are the same, the bytes in proportion.

    Returns
    -------
    CostTable

    Raises
    ------
    ValueError
        If `head` or `attention` is not as above, a size is smaller than 1, or `seq_len` exceeds `max_len`.

    Notes
    -----
    Counted are products of matrices, as in `torch.utils.flop_counter`; norms, softmax, activations and sums
    are left out: a few operations for each number, where a product does hundreds. With a causal mask the
    plain path computes all T·T scores; a fused kernel may skip the masked half, and computes scores again in
    the backward pass: neither is counted. The torch counter reports 0 for fused attention on a CPU.

    Activations are those of float32 on a CPU. The KV cache is 0 without causal mask or language-model head.
    For N parameters outside the embeddings and short texts, training takes about ``6·N`` operations a token.

    References
    ----------
    .. [1] Kaplan et al., "Scaling Laws for Neural Language Models", arXiv 2001.08361, section 2.1, table 1.
    .. [2] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv
       2205.05198, section 4, whose 16-bit count with dropout differs from this one.
    .. [3] Dao et al., "FlashAttention", arXiv 2205.14135, section 3, for what a fused kernel keeps.
    .. [4] Pope et al., "Efficiently Scaling Transformer Inference", arXiv 2211.05102, section 2, for the
       cache.

    Examples
    --------
    One block, one row of 10 tokens; per token 4 maps of 2·2, attention 4·10·2, and 2 maps of 2·5:

    >>> config = TransformerConfig(vocab_size=7, d_model=2, n_heads=1, n_layers=1, d_ff=5)
    >>> table = cost_table(config, head=None, batch_size=1, seq_len=10)
    >>> table.flops_forward == 10 * (4 * 2 * 2 * 2 + 4 * 10 * 2 + 2 * 2 * 2 * 5)
    True
    >>> table.flops.kinds
    {'attention': 1120, 'feed_forward': 400}
    >>> table.bytes_kv_cache, cost_table(config, batch_size=1, seq_len=10).bytes_kv_cache
    (0, 160)
    """
    _check(config, head, batch_size, seq_len, n_classes, attention, bytes_per_number)
    sizes = {
        "B": batch_size,
        "T": seq_len,
        "D": config.d_model,
        "H": config.n_heads,
        "F": config.d_ff,
        "V": config.vocab_size,
        "C": n_classes,
    }
    times = dict.fromkeys(LAYERED, config.n_layers)
    w = bytes_per_number
    cached = config.causal and head == "lm"
    return CostTable(
        parameters=parameter_table(config, head, n_classes),
        flops=make_table(flops_terms(head), sizes, times),
        activations=make_table(activation_terms(config, head, attention, w), sizes, times),
        kv_cache=make_table(cache_terms(w) if cached else (), sizes, times),
        bytes_per_number=w,
    )


def _check(config, head, batch_size, seq_len, n_classes, attention, bytes_per_number) -> None:
    if head not in ("lm", "classifier", None):
        raise ValueError(f"head must be 'lm', 'classifier' or None, got {head!r}")
    if attention not in ("fused", "plain"):
        raise ValueError(f"attention must be 'fused' or 'plain', got {attention!r}")
    sizes = {"batch_size": batch_size, "seq_len": seq_len, "n_classes": n_classes}
    for name, size in {**sizes, "bytes_per_number": bytes_per_number}.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    if seq_len > config.max_len:
        raise ValueError(f"seq_len must be at most max_len={config.max_len}, got {seq_len}")


def _layout(sections: dict[str, tuple[ParameterRow, ...]], totals: dict[str, int]) -> str:
    """Lay out rows under headings, each with its sum, and further totals below."""
    rows = [row for group in sections.values() for row in group]
    widths = [max([len(_texts(row)[column]) for row in rows], default=0) for column in range(4)]
    digits = len(f"{max([*totals.values(), *(row.total for row in rows)]):,}")
    left = sum(widths) + 6
    lines = []
    for heading, group in sections.items():
        lines.append(heading)
        for row in group:
            texts = (f"{text:<{width}}" for text, width in zip(_texts(row), widths, strict=True))
            lines.append(f"{'  '.join(texts)}  {row.total:>{digits},}")
        lines.append(f"{'  together':<{left}}  {sum(row.total for row in group):>{digits},}")
    lines.append("-" * (left + 2 + digits))
    lines += [f"{name:<{left}}  {total:>{digits},}" for name, total in totals.items()]
    return "\n".join(lines)


def _texts(row: ParameterRow) -> tuple[str, str, str, str]:
    return f"  {row.name}", row.formula, row.numbers, f"× {row.times}" if row.times > 1 else ""
