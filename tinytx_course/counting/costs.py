"""What a transformer costs: operations and memory, from its settings alone.

Shape letters: B rows of a batch, T tokens, D model width, H heads, F feed-forward width, V vocabulary,
C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from tinytx.config import TransformerConfig
from tinytx.counting import LAYERS, ParameterTable, Term, make_table, parameter_table
from tinytx.settings import require

CostHead = Literal["lm", "classifier"]
AttentionPath = Literal["fused", "plain"]


def _flops(config: TransformerConfig, head: CostHead | None) -> Iterator[Term]:
    """Terms of the operations of one forward pass."""
    if config.kv_heads < config.n_heads:
        yield Term("blocks", "attention", "q_proj", "2·B·T·D·D")
        yield Term("blocks", "attention", "k_proj, v_proj", "2·2·B·T·D·n_kv_heads·K")
    else:
        yield Term("blocks", "attention", "q_proj, k_proj, v_proj", "3·2·B·T·D·D")
    yield Term("blocks", "attention", "scores", "2·B·T·T·D")
    yield Term("blocks", "attention", "weighted sums", "2·B·T·T·D")
    yield Term("blocks", "attention", "out_proj", "2·B·T·D·D")
    each = ""
    if config.n_experts > 1:
        each = "experts_per_token·"
        yield Term("blocks", "feed_forward", "router", "2·B·T·D·n_experts")
    for name in ("gate_proj", "up_proj") if config.activation == "swiglu" else ("up_proj",):
        yield Term("blocks", "feed_forward", name, f"{each}2·B·T·D·F")
    yield Term("blocks", "feed_forward", "down_proj", f"{each}2·B·T·F·D")
    if head == "lm":
        yield Term("head", "head", "lm_head", "2·B·T·D·V")
    elif head == "classifier":
        yield Term("head", "head", "class_head", "2·B·D·C")


def _activations(config: TransformerConfig, head: CostHead | None, path: AttentionPath) -> Iterator[Term]:
    """Terms of the bytes that a forward pass saves, 4 for a float32 number; ids have 8 bytes."""
    norm = "4·B·T·D + 2·4·B·T"  # the input; its mean and spread
    if config.norm_kind == "rms":  # torch forms it of several operations: the input, and the input divided
        norm = "2·4·B·T·D + 4·B·T"
    yield Term("embeddings", "embeddings", "token_ids", "8·B·T")
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm", norm)
    yield Term("blocks", "norms", "attn_norm", norm)
    for name, formula in _attention_activations(config, path):
        yield Term("blocks", "attention", name, formula)
    yield Term("blocks", "norms", "ff_norm", norm)
    for name, formula in _feed_forward_activations(config):
        yield Term("blocks", "feed_forward", name, formula)
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm", norm)
    if head == "lm":
        yield Term("head", "head", "into lm_head", "4·B·T·D")
        yield Term("head", "head", "log-probabilities", "4·B·T·V")
        yield Term("head", "head", "targets, count", "8·B·T + 4")
    elif head == "classifier":
        yield Term("head", "head", "pooling", "B·T + 8·B")
        yield Term("head", "head", "into class_head", "4·B·D")
        yield Term("head", "head", "log-probabilities", "4·B·C")
        yield Term("head", "head", "targets, count", "8·B + 4")


def _feed_forward_activations(config: TransformerConfig) -> Iterator[tuple[str, str]]:
    """Names and formulas of what one feed-forward network, or a mixture of them, saves."""
    # GELU and SiLU need their input in the backward pass, ReLU its output, saved for down_proj anyway; a gate
    # needs what it multiplies, too.
    inner = {"relu": 1, "swiglu": 4}.get(config.activation, 2)
    if config.n_experts == 1:
        yield "into up_proj", "4·B·T·D"
        yield "inner", f"{inner}·4·B·T·F"
        return
    yield "into router", "4·B·T·D"
    yield "probabilities, chosen", "4·B·T·n_experts + 8·B·T·experts_per_token"
    yield "whose tokens", "n_experts·(B·T·experts_per_token + B·T)"
    yield "into experts", "experts_per_token·4·B·T·D"
    yield "inner", f"experts_per_token·{inner}·4·B·T·F"
    yield "out of experts, weights", "experts_per_token·(4·B·T·D + 4·B·T)"


def _attention_activations(config: TransformerConfig, path: AttentionPath) -> Iterator[tuple[str, str]]:
    """Names and formulas of what one self-attention saves."""
    yield "into q, k, v", "4·B·T·D"
    yield "q, k, v", "3·4·B·T·D"
    if path == "fused":
        yield "log-sums of scores", "4·B·H·T"
    elif config.causal:  # before and after the mask made zeros, and the mask itself, one byte a cell, twice
        yield "attn_weights, masks", "2·4·B·H·T·T + 2·T·T"
    else:
        yield "attn_weights", "4·B·H·T·T"
    yield "into out_proj", "4·B·T·D"
    if path == "plain":  # relative positions add nothing: the scores are formed anyway
        return
    alibi = config.positions == "alibi"
    if alibi:
        yield "biases of the scores", "4·H·T·T" + " + T" * config.causal
    # The output of the kernel is saved as well as a copy: queries without allowed keys are set to zero; after
    # rotary positions the heads are in another order, and are copied to be merged.
    if (alibi and config.causal) or (config.positions == "rotary" and config.n_heads > 1):
        yield "out of the kernel", "4·B·T·D"


@dataclass(frozen=True)
class CostTable:
    """Operations and memory of one model on one batch, its numbers in float32.

    A multiply-add counts as two operations. Each of the four tables has the rows, `.total`, `.parts` and
    `.kinds` of a `ParameterTable`.
    """

    parameters: ParameterTable  # in numbers
    flops: ParameterTable  # floating-point operations of one forward pass
    activations: ParameterTable  # bytes saved for the backward pass, parameters not among them
    kv_cache: ParameterTable  # bytes of keys and values that a generating model stores, the context full

    @property
    def flops_forward(self) -> int:
        """Operations of one forward pass."""
        return self.flops.total

    @property
    def flops_training(self) -> int:
        """Operations of one step, forward and backward; the optimizer's few per parameter are left out."""
        return 3 * self.flops.total  # backward: the gradient of the input, and that of the weight


def cost_table(
    config: TransformerConfig,
    head: CostHead | None = "lm",
    *,
    batch_size: int,
    seq_len: int,
    n_classes: int = 2,
    attention: AttentionPath = "fused",
) -> CostTable:
    """Compute what a model costs on a batch, without building it.

    A linear layer from D to F takes ``2·B·T·D·F`` operations for B·T vectors, attention ``4·B·T·T·D`` on top
    of its four projections. The backward pass takes twice the forward: each product has two gradients.

    Parameters
    ----------
    config : TransformerConfig
        Dropout is taken as 0: the masks it saves would come on top.
    head : {"lm", "classifier"} or None
        The head, with its loss (cross-entropy); a classifier pools by the mean.
    batch_size, seq_len : int
        B and T; all B·T tokens are real.
    n_classes : int
        C, read for a classifier.
    attention : {"fused", "plain"}
        "fused" as in `fused_attention`: the weights are not saved but computed again in the backward pass.
        "plain" as in `attention`: they are saved, T·T of them for each head.

    Notes
    -----
    Counted are products of matrices, as in `torch.utils.flop_counter`; norms, softmax, activations and sums
    are left out: a few operations for each number, where a product does hundreds. With a causal mask the
    plain path computes all T·T scores; a fused kernel may skip the masked half, and computes scores again in
    the backward pass: neither is counted. The torch counter reports 0 for fused attention on a CPU.

    Activations are those on a CPU. The KV cache is 0 without causal mask or language-model head.
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
    >>> table.kv_cache.total, cost_table(config, batch_size=1, seq_len=10).kv_cache.total
    (0, 160)
    """
    for name, given, choices in (
        ("head", head, (*get_args(CostHead), None)),
        ("attention", attention, get_args(AttentionPath)),
    ):
        require(given in choices, f"{name} must be one of {', '.join(map(repr, choices))}", repr(given))
    positive = {"batch_size": batch_size, "seq_len": seq_len, "n_classes": n_classes}
    for name, size in positive.items():
        require(size >= 1, f"{name} must be at least 1", size)
    require(seq_len <= config.max_len, f"seq_len must be at most max_len={config.max_len}", seq_len)
    sizes = {"B": batch_size, "T": seq_len, "D": config.d_model, "H": config.n_heads, "F": config.d_ff}
    sizes |= {"V": config.vocab_size, "C": n_classes, "K": config.head_dim, "n_kv_heads": config.kv_heads}
    sizes |= {name: getattr(config, name) for name in ("n_experts", "experts_per_token")}
    times = dict.fromkeys(LAYERS, config.n_layers)
    kv_width = "D" if config.kv_heads == config.n_heads else "n_kv_heads·K"
    cache = [Term("blocks", "attention", "keys, values", f"2·4·B·T·{kv_width}")]
    return CostTable(
        parameters=parameter_table(config, head, n_classes),
        flops=make_table(_flops(config, head), sizes, times),
        activations=make_table(_activations(config, head, attention), sizes, times),
        kv_cache=make_table(cache if config.causal and head == "lm" else [], sizes, times),
    )
