"""The transformer: a block, a stack of blocks, and the language model that reads its hidden states.

Shape letters: B batch size, T tokens, D model width, F feed-forward width, V vocabulary,
E experts, A experts of one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from tinytx.attention import MultiHeadAttention
from tinytx.config import TransformerConfig
from tinytx.fast import IGNORE_ID, Dropout, output_loss
from tinytx.kv_cache import Cache, KeyValues
from tinytx.masks import Mask, causal_mask, check_bool, combine_masks, dtype_of
from tinytx.positions import AlibiPositions, LearnedPositions, RotaryPositions, SinusoidalPositions
from tinytx.settings import require

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "swiglu": nn.SiLU,  # of the gate
}


class FeedForward(nn.Module):
    """Transform each token on its own: ``act(x W_up + b_up) W_down + b_down``.

    With "swiglu" a gate takes the place of the activation, which acts within it:
    ``(silu(x W_gate + b_gate) * (x W_up + b_up)) W_down + b_down``.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.3, equation 2.
    .. [2] Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv 1606.08415, section 2.
    .. [3] Shazeer, "GLU Variants Improve Transformer", arXiv 2002.05202, section 2, equation 6, for SwiGLU.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        gated = config.activation == "swiglu"
        self.gate_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias) if gated else None
        self.up_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down_proj = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.dropout)
        self.activation = ACTIVATIONS[config.activation]()

    def forward(self, x: Tensor) -> Tensor:
        """Transform each vector of x, (..., D)."""
        if self.gate_proj is None:
            inner = self.activation(self.up_proj(x))  # (..., F)
        else:
            inner = self.activation(self.gate_proj(x)) * self.up_proj(x)  # (..., F)
        output: Tensor = self.down_proj(self.dropout(inner))  # (..., D)
        return output


class MixtureOfExperts(nn.Module):
    """Transform each token by those of E feed-forward networks that a router chooses for it.

    ``sum_e p_e FeedForward_e(x)`` over the A experts with the largest ``p = softmax(x W_router)``.

    Notes
    -----
    The weights p are not scaled to sum to 1 over the chosen: with one expert a token, its weight would always
    be 1, and the router would get no gradient. Published models add a loss that holds the experts equally
    busy, and a limit on the tokens of an expert; here there is neither.

    References
    ----------
    .. [1] Shazeer et al., "Outrageously Large Neural Networks", arXiv 1701.06538, section 2.
    .. [2] Fedus et al., "Switch Transformers", arXiv 2101.03961, section 2.1, equations 1 and 2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.experts_per_token = config.experts_per_token
        self.router = nn.Linear(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(config.n_experts))

    def forward(self, x: Tensor) -> Tensor:
        """Transform each vector of x, (..., D)."""
        weights, chosen = self.router(x).softmax(dim=-1).topk(self.experts_per_token)  # (..., A)
        output = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            here = chosen == number  # (..., A), True at most once a token
            tokens = here.any(dim=-1)  # (...)
            output[tokens] += weights[here][:, None] * expert(x[tokens])  # (n, D)
        return output


def feed_forward(config: TransformerConfig) -> FeedForward | MixtureOfExperts:
    """The feed-forward network of a block, or several with a router."""
    return FeedForward(config) if config.n_experts == 1 else MixtureOfExperts(config)


def make_norm(config: TransformerConfig) -> nn.LayerNorm | nn.RMSNorm:
    """A norm over the width of the residual stream."""
    if config.norm_kind == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def make_attention(config: TransformerConfig, *, over_memory: bool = False) -> MultiHeadAttention:
    """The attention of a block; over its own tokens, with the positions that act inside it."""
    positions: nn.Module | None = None
    if config.positions == "rotary" and not over_memory:
        positions = RotaryPositions(config.max_len, config.head_dim, config.rotary_base)
    elif config.positions == "alibi" and not over_memory:
        positions = AlibiPositions(config.n_heads)
    return MultiHeadAttention(
        d_model=config.d_model,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        bias=config.bias,
        dropout=config.dropout,
        positions=positions,
    )


class Block(nn.Module):
    """Self-attention, then feed-forward, each added to the residual stream.

    Pre-norm (`norm` "first"): ``x + f(norm(x))``. Post-norm ("last"), as in the paper: ``norm(x + f(x))``.

    Parameters
    ----------
    config : TransformerConfig

    Notes
    -----
    Equal to `torch.nn.TransformerEncoderLayer` with ``norm_first=(config.norm == "first")`` and
    ``batch_first=True``, for what that layer knows: layer norm, ReLU or GELU, no positions of its own.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 5.4.
    .. [2] Xiong et al., arXiv 2002.04745, section 3, on pre-norm and post-norm.

    Examples
    --------
    >>> from tinytx.config import PRESETS
    >>> block = Block(PRESETS["tiny"])
    >>> block(torch.randn(2, 5, 64)).shape
    torch.Size([2, 5, 64])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm == "first"
        self.attn_norm = make_norm(config)
        self.attn = make_attention(config)
        self.ff_norm = make_norm(config)
        self.ff = feed_forward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Mask = None, cache: KeyValues | None = None) -> Tensor:
        """Transform the residual stream x, (B, T, D); mask and cache as in `MultiHeadAttention.forward`."""
        if self.norm_first:
            x = x + self.dropout(self.attn(self.attn_norm(x), mask=mask, cache=cache))
            output: Tensor = x + self.dropout(self.ff(self.ff_norm(x)))
        else:
            x = self.attn_norm(x + self.dropout(self.attn(x, mask=mask, cache=cache)))
            output = self.ff_norm(x + self.dropout(self.ff(x)))
        return output


# Standard deviation of the first logits of an untied output layer: so the first loss is close to ln V.
FIRST_LOGIT_STD = 0.25


def tied_std(config: TransformerConfig) -> float:
    """Standard deviation of the first logits of tied embeddings: 1, or 0.5 pre-norm.

    Smaller, tokens are lost among the positions that are added to them; larger, a pre-norm model begins by
    repeating its input, as the residual stream carries it to the output layer. Measured by `since-2017` of
    the experiments.
    """
    return 0.5 if config.norm == "first" else 1.0


class Transformer(nn.Module):
    """Embeddings, positions and a stack of blocks: from token ids to hidden states.

    Parameters
    ----------
    config : TransformerConfig

    Notes
    -----
    Pre-norm, a `final_norm` follows the stack; post-norm, each block ends in a norm already. Linear layers
    start as `init_linear` says; pre-norm, those that write into the residual stream start smaller by
    ``sqrt(2 n_layers)``, so that it does not grow with depth. Embeddings start with a length of about 1,
    which scaling takes to ``sqrt(D)``, or, tied, with ``tied_std``; sinusoidal positions have
    ``sqrt(D / 2)``, learned ones about 1.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 3.4.
    .. [2] Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3, for the
       smaller start of residual layers and the last norm.

    Examples
    --------
    >>> from tinytx.config import PRESETS
    >>> Transformer(PRESETS["tiny"])(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 3, 64])
    """

    block_class: type[nn.Module] = Block
    n_sublayers = 2  # that write into the residual stream, in each block

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embed = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_embed: nn.Module = nn.Identity()  # rotary and ALiBi act inside attention
        if config.positions == "sinusoidal":
            self.pos_embed = SinusoidalPositions(config.max_len, config.d_model)
        elif config.positions == "learned":
            self.pos_embed = LearnedPositions(config.max_len, config.d_model, config.position_offset)
        self.segment_embed = nn.Embedding(config.n_segments, config.d_model) if config.n_segments else None
        self.embed_norm = make_norm(config) if config.embed_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(self.block_class(config) for _ in range(config.n_layers))
        self.final_norm = make_norm(config) if config.norm == "first" else nn.Identity()
        std = config.d_model**-0.5
        nn.init.normal_(
            self.token_embed.weight, std=std * (tied_std(config) if config.tie_embeddings else 1.0)
        )
        if self.segment_embed is not None:
            nn.init.normal_(self.segment_embed.weight, std=std)
        gain = (self.n_sublayers * config.n_layers) ** -0.5 if config.norm == "first" else 1.0
        for name, module in self.blocks.named_modules():
            if isinstance(module, nn.Linear):
                init_linear(module, gain if name.endswith(("out_proj", "down_proj")) else 1.0)

    def forward(
        self,
        token_ids: Tensor,
        padding_mask: Mask = None,
        segment_ids: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Turn tokens into hidden states.

        Parameters
        ----------
        token_ids : Tensor of shape (B, T), integer
            In 0..V-1, T at most `max_len`; short rows are padded on the right, or, where positions are
            relative or there are none, on the left.
        padding_mask : Tensor of shape (B, T), bool, optional
            True = a real token. A causal model needs none for padding on the right: real tokens never attend
            to what follows them, and without it attention is faster.
        segment_ids : Tensor of shape (B, T), integer, optional
            The sentence of each token, in 0..n_segments-1; all 0 where not given.
        cache : Cache, optional
            Of a causal model that reads what it writes: `token_ids` follow the cached tokens.

        Returns
        -------
        Tensor of shape (B, T, D)
            Hidden states; those of padding mean nothing.

        Raises
        ------
        TypeError
            If the ids are not int32 or int64, or the mask is not boolean.
        ValueError
            If a shape does not fit, an id lies outside its range or a row with absolute positions begins with
            padding (both seen on the CPU only: elsewhere the check would wait), segments come without
            `n_segments`, or a cache with padding or no causal model.
        """
        x, mask = self.embed_and_mask(token_ids, padding_mask, segment_ids, cache)
        for number, block in enumerate(self.blocks):
            x = block(x, mask, None if cache is None else cache.own[number])
        hidden: Tensor = self.final_norm(x)
        return hidden

    def embed_and_mask(
        self, token_ids: Tensor, padding_mask: Mask, segment_ids: Tensor | None, cache: Cache | None
    ) -> tuple[Tensor, Mask]:
        """Check the input; return what the blocks read: embeddings, (B, T, D), and the attention mask."""
        start = 0 if cache is None else cache.length
        self._check(token_ids, padding_mask, segment_ids, start)
        if cache is not None and not (self.config.causal and padding_mask is None):
            got = "a padding_mask" if self.config.causal else "causal=False"
            raise ValueError(f"a cache needs a causal model and rows without padding, got {got}")
        keys = None if padding_mask is None else padding_mask[:, None, None, :]  # (B, 1, 1, T)
        causal = None
        if self.config.causal and not (start and token_ids.shape[1] == 1):  # one last token attends to all
            end = start + token_ids.shape[1]
            causal = causal_mask(end, device=token_ids.device)[start:]  # (T, S)
            causal.is_lower_triangle = not start  # type: ignore[attr-defined]  # so it need not be read
        return self.embed(token_ids, start, segment_ids), combine_masks(keys, causal)

    def embed(self, token_ids: Tensor, start: int = 0, segment_ids: Tensor | None = None) -> Tensor:
        """Embed tokens, (B, T), of which the first has position `start`: (B, T, D), unchecked."""
        x: Tensor = self.token_embed(token_ids)  # (B, T, D)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        # Any module that maps x may take the place of the positions, so `start` is passed only where needed.
        moved = start and not isinstance(self.pos_embed, nn.Identity)
        x = self.pos_embed(x, start) if moved else self.pos_embed(x)
        if self.segment_embed is not None:
            x = x + (self.segment_embed.weight[0] if segment_ids is None else self.segment_embed(segment_ids))
        embedded: Tensor = self.dropout(self.embed_norm(x))
        return embedded

    def _check(self, token_ids: Tensor, padding_mask: Mask, segment_ids: Tensor | None, start: int) -> None:
        config, ids = self.config, {"token_ids": (token_ids, self.config.vocab_size)}
        if segment_ids is not None:
            rule = "segment_ids need a model with n_segments of 1 or more"
            require(config.n_segments, rule, "n_segments=0")
            ids["segment_ids"] = segment_ids, config.n_segments
        for name, (given, _) in ids.items():
            if getattr(given, "dtype", None) not in (torch.int32, torch.int64):
                raise TypeError(f"{name} must be a tensor of int32 or int64, got {dtype_of(given)}")
        shape = tuple(token_ids.shape)
        fits = len(shape) == 2 and 0 not in shape
        require(fits, "token_ids must have shape (B, T) with B and T at least 1", shape)
        if (length := start + shape[1]) > config.max_len:
            raise ValueError(f"a row must hold at most max_len={config.max_len} token ids, got {length}")
        if padding_mask is not None:
            check_bool(padding_mask, "padding_mask")
        for name, alike in (("padding_mask", padding_mask), ("segment_ids", segment_ids)):
            if alike is not None and (got := tuple(alike.shape)) != shape:
                raise ValueError(f"{name} must have the shape of token_ids, {shape}, got {got}")
        if token_ids.device.type != "cpu" or torch.compiler.is_compiling():
            return  # to look at the numbers would wait for the device
        for name, (given, end) in ids.items():
            low, high = given.aminmax()
            if low < 0 or high >= end:
                raise ValueError(f"{name} must lie in 0..{end - 1}, got {low} to {high}")
        if padding_mask is not None and config.positions in ("sinusoidal", "learned"):
            begins_late = ~padding_mask[:, 0] & padding_mask.any(dim=1)  # (B,)
            if begins_late.any():
                rule = "padding must be on the right where positions are absolute"
                raise ValueError(f"{rule}, got row {int(begins_late.int().argmax())}, which begins with it")


@contextmanager
def bidirectional(body: Transformer) -> Iterator[None]:
    """Let a causal transformer attend to both sides while this lasts, with the same weights."""
    config, body.config = body.config, body.config.replace(causal=False)
    try:
        yield
    finally:
        body.config = config


@contextmanager
def record_hidden_states(body: Transformer) -> Iterator[list[Tensor]]:
    """Collect the hidden states of every layer while the ordinary forward of a transformer runs.

    Yields
    ------
    list of n_layers + 1 Tensors of shape (B, T, D)
        After one forward: the embeddings, then the output of each block, the last after the final norm.
    """
    hidden: list[Tensor] = []
    with ExitStack() as hooks:
        first = body.blocks[0].register_forward_pre_hook(lambda module, args: hidden.append(args[0]))
        hooks.enter_context(first)
        for module in (*body.blocks[:-1], body.final_norm):
            hook = module.register_forward_hook(lambda module, args, output: hidden.append(output))
            hooks.enter_context(hook)
        yield hidden


class LanguageModel(nn.Module):
    """A transformer, `body`, and an output layer, `head`, that scores the vocabulary at every position.

    ``logits = hidden W + b``. With a causal transformer, ``softmax(logits[:, t])`` is the distribution of the
    token that follows token t. With `tie_embeddings` the matrix W is that of the token embeddings.

    Parameters
    ----------
    config : TransformerConfig

    Notes
    -----
    Weights start such that the first logits are small (standard deviation ``FIRST_LOGIT_STD``, tied
    ``tied_std``) and the first loss is close to ln V, that of a uniform guess.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, section 3.4.

    Examples
    --------
    >>> from tinytx.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 3, 1000])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.body = Transformer(config)
        self.head = nn.Linear(config.d_model, config.vocab_size, bias=config.lm_bias)
        init_output_layer(self.head, self.body.token_embed, config)

    def forward(self, token_ids: Tensor, padding_mask: Mask = None, cache: Cache | None = None) -> Tensor:
        """Score the vocabulary at every position: (B, T, V). Parameters as in `Transformer.forward`."""
        logits: Tensor = self.head(self.body(token_ids, padding_mask, cache=cache))  # (B, T, V)
        return logits

    def loss(
        self, token_ids: Tensor, targets: Tensor, padding_mask: Mask = None, *, ignore_id: int = IGNORE_ID
    ) -> Tensor:
        """Mean cross-entropy of the predicted targets, in nats a token, in float32 or wider.

        ``F.cross_entropy(model(token_ids).flatten(0, 1), targets.flatten(), ignore_index=ignore_id)``, but
        without all logits in memory at once (`output_loss`). `targets`, (B, T), are the tokens to predict:
        in next-token prediction, those that follow.
        """
        hidden = self.body(token_ids, padding_mask)  # (B, T, D)
        return output_loss(hidden, self.head.weight, targets, bias=self.head.bias, ignore_id=ignore_id)


def init_linear(layer: nn.Linear, gain: float = 1.0) -> None:
    """Start a linear layer from Glorot's uniform distribution, with a bias of zero."""
    nn.init.xavier_uniform_(layer.weight, gain=gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def init_output_layer(head: nn.Linear, embedding: nn.Embedding, config: TransformerConfig) -> None:
    """Tie an output layer to the embeddings, or initialise it for small first logits; its bias is zero."""
    if config.tie_embeddings:
        head.weight = embedding.weight
    else:
        nn.init.normal_(head.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)
    if head.bias is not None:
        nn.init.zeros_(head.bias)
