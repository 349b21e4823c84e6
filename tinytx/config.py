"""The settings of a transformer: one frozen, checked dataclass, and presets by name."""

from __future__ import annotations

import difflib
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tinytx.settings import require


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Everything that fixes the shape of a transformer, checked when it is built.

    Parameters
    ----------
    vocab_size : int
        V, the number of token ids.
    d_model : int
        D, the width of the residual stream; a multiple of `n_heads`.
    n_heads : int
        H, attention heads in each block; each is ``head_dim = d_model / n_heads`` wide.
    n_layers : int
        The number of blocks.
    d_ff : int
        F, the inner width of the feed-forward network, which has two matrices of it, and with "swiglu" three:
        two thirds of F then give as many parameters.
    max_len : int
        The longest sequence the model takes, in tokens.
    causal : bool
        True: a token attends to itself and to those before it. False: to the whole sequence.
    norm : {"first", "last"}
        Pre-norm, ``x + f(norm(x))``, or post-norm, as in the paper, ``norm(x + f(x))``.
    activation : {"gelu", "gelu-tanh", "relu", "silu", "swiglu"}
        Of the feed-forward network. "gelu-tanh" is GELU as GPT-2 approximates it; "silu", ``x sigmoid(x)``,
        is also known as swish; "swiglu" multiplies the inner numbers by a gate, see `FeedForward`.
    positions : {"sinusoidal", "learned", "rotary", "alibi", "none"}
        "sinusoidal" (`d_model` even) and "learned" add a vector to each embedding; "rotary" (`head_dim` even)
        and "alibi" act inside each self-attention. Only "learned" has parameters.
    dropout : float
        In [0, 1); where the paper has it, on the attention weights, on the inner numbers of the feed-forward
        network, as in torch's layers, and before the head of a classifier.
    bias : bool
        False leaves out the additive bias of every linear layer and every norm, in the head too.
    tie_embeddings : bool
        True: the output layer of a language model uses the embedding matrix as its weight.
    scale_embeddings : bool
        True multiplies embeddings by ``sqrt(d_model)`` before positions are added.
    n_segments : int
        Sentences that a row may consist of, each marked by a learned vector added to its tokens; 0 for none.
    embed_norm : bool
        True puts a norm on the sum of embeddings, before the first block, as in BERT.
    norm_eps : float
        Positive; added to the variance in every norm.
    position_offset : int
        Rows of the table of learned positions before that of the first position, never read. Published models
        have them: RoBERTa and BART begin to count at row 2.
    head_bias : bool, optional
        Whether the output layer over the vocabulary adds a bias. Where not given, as `bias`, except that a
        translator with tied embeddings adds none.
    norm_kind : {"layer", "rms"}
        What every norm is: LayerNorm, or RMSNorm, which neither subtracts the mean nor adds a shift.
    n_kv_heads : int, optional
        G, heads of keys and values, which divides `n_heads`: H / G heads of queries in a row share one
        (grouped-query attention). By default each has its own.
    rotary_base : float
        Positive; the slowest pair of rotary positions turns by ``rotary_base^(2 / head_dim - 1)`` a token.
    n_experts, experts_per_token : int
        With 2 or more experts a `MixtureOfExperts` takes the place of each feed-forward network; every token
        goes through `experts_per_token` of them.

    References
    ----------
    .. [1] Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, sections 3 and 5.4.
    .. [2] Press and Wolf, "Using the Output Embedding to Improve Language Models", arXiv 1608.05859.
    .. [3] Xiong et al., "On Layer Normalization in the Transformer Architecture", arXiv 2002.04745.
    .. [4] Devlin et al., "BERT", arXiv 1810.04805, section 3 and figure 2, for segments.
    .. [5] Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv 1910.07467, equation 4.
    .. [6] Ainslie et al., "GQA", arXiv 2305.13245, section 2.2, for grouped queries.

    Examples
    --------
    >>> config = TransformerConfig(vocab_size=100, d_model=12, n_heads=3, n_layers=2, d_ff=24)
    >>> config.head_dim
    4
    >>> config.replace(n_heads=5)
    Traceback (most recent call last):
    ValueError: n_heads must divide d_model, got d_model=12, n_heads=5
    """

    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    max_len: int = 512
    causal: bool = True
    norm: Literal["first", "last"] = "first"
    activation: Literal["gelu", "gelu-tanh", "relu", "silu", "swiglu"] = "gelu"
    positions: Literal["sinusoidal", "learned", "rotary", "alibi", "none"] = "sinusoidal"
    dropout: float = 0.0
    bias: bool = True
    tie_embeddings: bool = False
    scale_embeddings: bool = True
    n_segments: int = 0
    embed_norm: bool = False
    norm_eps: float = 1e-5
    position_offset: int = 0
    head_bias: bool | None = None
    norm_kind: Literal["layer", "rms"] = "layer"
    n_kv_heads: int | None = None
    rotary_base: float = 10_000.0
    n_experts: int = 1
    experts_per_token: int = 1

    def __post_init__(self) -> None:
        for name, (choices, types, lowest) in _FIELDS.items():
            value = getattr(self, name)
            if choices:
                require(value in choices, f"{name} must be one of {', '.join(choices)}", repr(value))
            elif not isinstance(value, types) or (isinstance(value, bool) and types[0] is not bool):
                raise TypeError(f"{name} must be {_KINDS[types[0]]}, got {value!r}")
            elif types[0] is int and value is not None:
                require(value >= lowest, f"{name} must be at least {lowest}", value)
        require(0 <= self.dropout < 1, "dropout must lie in [0, 1)", self.dropout)
        for name in ("norm_eps", "rotary_base"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name} must be positive", value)
        sizes, even = f"d_model={self.d_model}, n_heads={self.n_heads}", "must be even for"
        require(self.d_model % self.n_heads == 0, "n_heads must divide d_model", sizes)
        if self.positions == "sinusoidal":
            require(self.d_model % 2 == 0, f"d_model {even} sinusoidal positions", f"d_model={self.d_model}")
        if self.positions == "rotary":
            require(self.head_dim % 2 == 0, f"head_dim = d_model / n_heads {even} rotary positions", sizes)
        if self.positions != "learned":
            got = f"position_offset={self.position_offset}, positions={self.positions!r}"
            require(self.position_offset == 0, "position_offset must be 0 unless positions are learned", got)
        got = f"n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}"
        require(self.n_heads % self.kv_heads == 0, "n_kv_heads must divide n_heads", got)
        got = f"experts_per_token={self.experts_per_token}, n_experts={self.n_experts}"
        require(self.experts_per_token <= self.n_experts, "experts_per_token must be at most n_experts", got)

    @property
    def head_dim(self) -> int:
        """K, the width of one attention head."""
        return self.d_model // self.n_heads

    @property
    def kv_heads(self) -> int:
        """G, heads of keys and values."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def lm_bias(self) -> bool:
        """Whether the head of a language model, causal or masked, adds a bias."""
        return self.bias if self.head_bias is None else self.head_bias

    @property
    def translation_bias(self) -> bool:
        """Whether the head of a translator adds a bias."""
        return self.bias and not self.tie_embeddings if self.head_bias is None else self.head_bias

    def replace(self, **changes: Any) -> TransformerConfig:
        """Return a copy with some fields changed, checked again."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, fit for JSON; `from_dict` takes them back.

        Rare fields are left out where they have their default: older checkpoints and results lack them.
        """
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default or field.name not in _RARE
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TransformerConfig:
        """Build a configuration from the fields that `to_dict` wrote.

        Examples
        --------
        >>> TransformerConfig.from_dict({"n_head": 2})
        Traceback (most recent call last):
        ValueError: fields must be those of TransformerConfig, got unknown n_head (did you mean n_heads?)
        """
        known = {field.name: field.default is MISSING for field in fields(cls)}  # name: whether required
        near = {name: difflib.get_close_matches(name, known, n=1) for name in values if name not in known}
        unknown = [name + (f" (did you mean {found[0]}?)" if found else "") for name, found in near.items()]
        require(not near, "fields must be those of TransformerConfig", f"unknown {', '.join(unknown)}")
        missing = [name for name, required in known.items() if required and name not in values]
        require(not missing, "fields without a default must be given", f"none for {', '.join(missing)}")
        return cls(**values)


_KINDS = {int: "an integer", bool: "True or False", float: "a number"}
_FIELDS = {  # name: choices; types of a value, the first of which names the kind; lowest integer
    name: (
        get_args(hint) if get_origin(hint) is Literal else (),
        (float, int) if hint is float else get_args(hint) or (hint,),
        0 if name in ("n_segments", "position_offset") else 1,
    )
    for name, hint in get_type_hints(TransformerConfig).items()
}
_RARE = list(_FIELDS)[list(_FIELDS).index("n_segments") :]

PRESETS: dict[str, TransformerConfig] = {
    # The model of the lab the course grew out of: torch's encoder layer with its defaults, and a causal mask.
    "seed-lab": TransformerConfig(
        vocab_size=100, d_model=200, n_heads=2, n_layers=4, d_ff=200, norm="last", activation="relu"
    ),
    "tiny": TransformerConfig(
        vocab_size=1_000, d_model=64, n_heads=4, n_layers=2, d_ff=256, max_len=128, tie_embeddings=True
    ),
    "small-gpt": TransformerConfig(vocab_size=8_000, d_model=256, n_heads=4, n_layers=6, d_ff=1_024),
}
