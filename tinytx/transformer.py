"""The transformer: a block, a stack of blocks, and the two models that read its hidden states.

Shape letters: B batch size, T tokens, D model width, V vocabulary, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.attention import MultiHeadAttention
from tinytx.config import TransformerConfig
from tinytx.fast import IGNORE_ID, Dropout, output_loss, sent
from tinytx.feed_forward import feed_forward
from tinytx.kv_cache import Cache, KeyValues
from tinytx.masks import causal_mask, check_bool, combine_masks, dtype_of
from tinytx.positions import AlibiPositions, LearnedPositions, RotaryPositions, SinusoidalPositions


def make_norm(config: TransformerConfig) -> nn.LayerNorm | nn.RMSNorm:
    """A norm over the width of the residual stream."""
    if config.norm_kind == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def self_attention(config: TransformerConfig) -> MultiHeadAttention:
    """The self-attention of a block, with the positions that act inside attention."""
    positions: nn.Module | None = None
    if config.positions == "rotary":
        positions = RotaryPositions(config.max_len, config.head_dim, config.rotary_base)
    elif config.positions == "alibi":
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

    Notes
    -----
    Equal to `torch.nn.TransformerEncoderLayer` with ``norm_first=(config.norm == "first")`` and
    ``batch_first=True``.

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 5.4.
    .. [2] Xiong et al., arXiv 2002.04745, section 3, on pre-norm and post-norm.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm_first = config.norm == "first"
        self.attn_norm = make_norm(config)
        self.attn = self_attention(config)
        self.ff_norm = make_norm(config)
        self.ff = feed_forward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, cache: KeyValues | None = None) -> Tensor:
        """Transform the residual stream x, (B, T, D); mask and cache as in `MultiHeadAttention.forward`."""
        if self.norm_first:
            x = x + self.dropout(self.attn(self.attn_norm(x), mask=mask, cache=cache))
            return x + self.dropout(self.ff(self.ff_norm(x)))
        x = self.attn_norm(x + self.dropout(self.attn(x, mask=mask, cache=cache)))
        return self.ff_norm(x + self.dropout(self.ff(x)))


# Standard deviation of a language model's first logits: nearly equal, so the first loss is close to ln V.
FIRST_LOGIT_STD = 0.25


class Transformer(nn.Module):
    """Embeddings, positions and a stack of blocks: from token ids to hidden states.

    Notes
    -----
    Pre-norm, a `final_norm` follows the stack; post-norm, each block ends in a norm already. Linear layers
    start from Glorot's uniform distribution with biases of zero; pre-norm, those that write into the residual
    stream start smaller by ``sqrt(2 n_layers)``, so that the stream does not grow with depth. Embeddings
    start as vectors of length about 1, which scaling takes to about ``sqrt(D)``; sinusoidal positions have
    ``sqrt(D / 2)``, learned ones about 1. Tied to a head embeddings start smaller (`LanguageModel`).

    References
    ----------
    .. [1] Vaswani et al., arXiv 1706.03762, sections 3.1 and 3.4.
    .. [2] Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3, for the
       smaller start of residual layers and the last norm.
    """

    block_class: type[nn.Module] = Block
    n_sublayers = 2  # that write into the residual stream, in each block

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embed = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_embed = _positions(config)
        self.segment_embed = nn.Embedding(config.n_segments, config.d_model) if config.n_segments else None
        self.embed_norm = make_norm(config) if config.embed_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(self.block_class(config) for _ in range(config.n_layers))
        self.final_norm = make_norm(config) if config.norm == "first" else nn.Identity()
        self._init_weights()

    def _init_weights(self) -> None:
        config, std = self.config, self.config.d_model**-0.5
        token_std = std * FIRST_LOGIT_STD if config.tie_embeddings else std
        nn.init.normal_(self.token_embed.weight, std=token_std)
        if self.segment_embed is not None:
            nn.init.normal_(self.segment_embed.weight, std=std)
        gain = (self.n_sublayers * config.n_layers) ** -0.5 if config.norm == "first" else 1.0
        for name, module in self.blocks.named_modules():
            if isinstance(module, nn.Linear):
                residual = name.endswith(("out_proj", "down_proj"))
                nn.init.xavier_uniform_(module.weight, gain=gain if residual else 1.0)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(
        self,
        token_ids: Tensor,
        padding_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Turn tokens into hidden states.

        Parameters
        ----------
        token_ids : Tensor of shape (B, T), integer
            In 0..V-1, T at most `max_len`; short rows are padded on the right.
        padding_mask : Tensor of shape (B, T), bool, optional
            True = a real token. A causal model needs none: real tokens never attend to what follows them, and
            without it attention is faster.
        segment_ids : Tensor of shape (B, T), integer, optional
            The sentence of each token, in 0..n_segments-1; all 0 where not given.
        cache : Cache, optional
            Of a causal model that reads row by row what it writes: `token_ids` follow the cached tokens.

        Returns
        -------
        Tensor of shape (B, T, D)
            Hidden states; those of padding mean nothing.

        Raises
        ------
        TypeError
            If the ids are not int32 or int64, or the mask is not boolean.
        ValueError
            If a shape does not fit, an id lies outside its range (checked on the CPU only: elsewhere the
            check would wait for the device), a model without segments gets segments, or a model that is not
            causal, or rows with padding, a cache.
        """
        x, mask = self.embed_and_mask(token_ids, padding_mask, segment_ids, cache)
        for number, block in enumerate(self.blocks):
            x = block(x, mask, None if cache is None else cache.own[number])
        return self.final_norm(x)

    def embed_and_mask(
        self,
        token_ids: Tensor,
        padding_mask: Tensor | None,
        segment_ids: Tensor | None = None,
        cache: Cache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
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
        return self.embed(token_ids, start, segment_ids), combine_masks(keys, causal)

    def embed(self, token_ids: Tensor, start: int = 0, segment_ids: Tensor | None = None) -> Tensor:
        """Embed tokens, (B, T), of which the first has position `start`: (B, T, D), unchecked."""
        x = self.token_embed(token_ids)  # (B, T, D)
        if self.config.scale_embeddings:
            x = x * math.sqrt(self.config.d_model)
        # Any module that maps x may take the place of the positions, so `start` is passed only where needed.
        moved = start and not isinstance(self.pos_embed, nn.Identity)
        x = self.pos_embed(x, start) if moved else self.pos_embed(x)
        if self.segment_embed is not None:
            x = x + (self.segment_embed.weight[0] if segment_ids is None else self.segment_embed(segment_ids))
        return self.dropout(self.embed_norm(x))

    def _check(
        self, token_ids: Tensor, padding_mask: Tensor | None, segment_ids: Tensor | None, start: int
    ) -> None:
        for name, given in (("token_ids", token_ids), ("segment_ids", segment_ids)):
            if given is not None and (kind := dtype_of(given)) not in (torch.int32, torch.int64):
                raise TypeError(f"{name} must be a tensor of int32 or int64, got {kind}")
        config, shape = self.config, tuple(token_ids.shape)
        if token_ids.dim() != 2 or 0 in shape:
            raise ValueError(f"token_ids must have shape (B, T) with B and T at least 1, got {shape}")
        if (length := start + shape[1]) > config.max_len:
            raise ValueError(f"a row must hold at most max_len={config.max_len} token ids, got {length}")
        if padding_mask is not None:
            check_bool(padding_mask, "padding_mask")
        if segment_ids is not None and not config.n_segments:
            raise ValueError("segment_ids need a model with n_segments of 1 or more, got n_segments=0")
        for name, given in (("padding_mask", padding_mask), ("segment_ids", segment_ids)):
            if given is not None and (got := tuple(given.shape)) != shape:
                raise ValueError(f"{name} must have the shape of token_ids, {shape}, got {got}")
        sizes = {"token_ids": (token_ids, config.vocab_size), "segment_ids": (segment_ids, config.n_segments)}
        for name, (given, end) in sizes.items():
            if given is not None and given.device.type == "cpu" and not torch.compiler.is_compiling():
                low, high = given.aminmax()
                if low < 0 or high >= end:
                    raise ValueError(f"{name} must lie in 0..{end - 1}, got {low} to {high}")


def _positions(config: TransformerConfig) -> nn.Module:
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.max_len, config.d_model)
    if config.positions == "learned":
        return LearnedPositions(config.max_len, config.d_model, config.position_offset)
    return nn.Identity()  # rotary and ALiBi act inside attention


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

    Notes
    -----
    Weights start such that the first logits are small (standard deviation ``FIRST_LOGIT_STD``) and the first
    loss is close to ln V, that of a uniform guess.

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

    def forward(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Score the vocabulary at every position: (B, T, V). Parameters as in `Transformer.forward`."""
        return self.head(self.hidden_states(token_ids, padding_mask, cache))  # (B, T, V)

    def hidden_states(
        self, token_ids: Tensor, padding_mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Compute the input of the output layer: (B, T, D). Parameters as in `Transformer.forward`."""
        return self.body(token_ids, padding_mask, cache=cache)

    def loss(
        self,
        token_ids: Tensor,
        targets: Tensor,
        padding_mask: Tensor | None = None,
        *,
        ignore_id: int = IGNORE_ID,
    ) -> Tensor:
        """Mean cross-entropy of the predicted targets, in nats a token, in float32 or wider.

        ``F.cross_entropy(model(token_ids).flatten(0, 1), targets.flatten(), ignore_index=ignore_id)``, but
        without all logits in memory at once (`output_loss`). `targets`, (B, T), are the tokens to predict:
        in next-token prediction, those that follow.
        """
        hidden = self.hidden_states(token_ids, padding_mask)  # (B, T, D)
        return output_loss(hidden, self.head.weight, targets, bias=self.head.bias, ignore_id=ignore_id)


def init_output_layer(head: nn.Linear, embedding: nn.Embedding, config: TransformerConfig) -> None:
    """Tie an output layer to the embeddings, or initialise it for small first logits; its bias is zero."""
    if config.tie_embeddings:
        head.weight = embedding.weight
    else:
        nn.init.normal_(head.weight, std=FIRST_LOGIT_STD * config.d_model**-0.5)
    if head.bias is not None:
        nn.init.zeros_(head.bias)


Pooling = Literal["mean", "last", "first"]


class Classifier(nn.Module):
    """A transformer, the pooled hidden state of all tokens, and an output layer that scores the classes.

    ``logits = pool(body(token_ids)) W + b``

    Parameters
    ----------
    config : TransformerConfig
    n_classes : int
        C.
    pooling : {"mean", "last", "first"}
        Over real tokens only: their mean, the last of them, or the first. In a causal transformer the first
        token has attended to nothing but itself.
    dropout : float, optional
        Before the output layer; that of the configuration where not given.
    body : Transformer, optional
        Read instead of a new one. It is not copied: training the classifier trains it.

    References
    ----------
    .. [1] Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, section 3.2.

    Examples
    --------
    Pretrain a language model, then fine-tune its body:

    >>> from tinytx.config import PRESETS
    >>> pretrained = LanguageModel(PRESETS["tiny"])
    >>> model = Classifier.from_body(pretrained.body, n_classes=2)
    >>> model(torch.tensor([[5, 8, 2]])).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        config: TransformerConfig,
        n_classes: int = 2,
        pooling: Pooling = "mean",
        dropout: float | None = None,
        *,
        body: Transformer | None = None,
    ) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be one of {', '.join(get_args(Pooling))}, got {pooling!r}")
        if n_classes < 1:
            raise ValueError(f"n_classes must be at least 1, got {n_classes}")
        if not isinstance(body, Transformer | None):
            raise TypeError(f"body must be a Transformer, such as model.body, got a {type(body).__name__}")
        if body is not None and body.config != config.replace(dropout=body.config.dropout):
            raise ValueError(f"body must have the configuration {config}, got {body.config}")
        self.config, self.pooling = config, pooling
        self.body = Transformer(config) if body is None else body
        self.dropout = nn.Dropout(config.dropout if dropout is None else dropout)
        self.head = nn.Linear(config.d_model, n_classes, bias=config.bias)
        nn.init.xavier_uniform_(self.head.weight)
        if config.bias:
            nn.init.zeros_(self.head.bias)

    @classmethod
    def from_body(
        cls, body: Transformer, n_classes: int = 2, pooling: Pooling = "mean", dropout: float | None = None
    ) -> Classifier:
        """Put a new output layer on a transformer, for instance a pretrained one; parameters as above."""
        return cls(body.config, n_classes, pooling, dropout, body=body)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score the classes of each row: (B, C). Parameters as in `Transformer.forward`."""
        pooled = pool(self.body(token_ids, padding_mask), padding_mask, self.pooling)  # (B, D)
        return self.head(self.dropout(pooled))  # (B, C)

    def loss(self, token_ids: Tensor, labels: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mean cross-entropy of the labels, (B,), in nats a row. Parameters as in `Transformer.forward`."""
        logits = self(token_ids, padding_mask)  # (B, C)
        return F.cross_entropy(logits.float(), sent(labels.long(), logits.device))


def pool(hidden: Tensor, padding_mask: Tensor | None, pooling: Pooling) -> Tensor:
    """Reduce the hidden states of each row, (B, T, D), to one vector, (B, D), over real tokens.

    Zeros (mean) or the first vector for a row without any real token. Parameters as in `Classifier`.

    Examples
    --------
    >>> hidden = torch.tensor([[[1.0], [3.0], [8.0]]])
    >>> real = torch.tensor([[True, True, False]])
    >>> [pool(hidden, real, how).item() for how in ("mean", "last", "first")]
    [2.0, 3.0, 1.0]
    """
    if padding_mask is None:
        padding_mask = hidden.new_ones(hidden.shape[:2], dtype=torch.bool)
    if pooling == "mean":
        real = padding_mask[:, :, None]  # (B, T, 1)
        return hidden.masked_fill(~real, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)  # (B, D)
    rows, positions = (torch.arange(n, device=hidden.device) for n in hidden.shape[:2])
    if pooling == "last":
        return hidden[rows, (padding_mask * positions).amax(dim=1)]  # (B, D)
    return hidden[rows, padding_mask.int().argmax(dim=1)]  # (B, D)
