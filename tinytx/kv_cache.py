"""Incremental decoding with a KV cache: one more token of each row costs one token's work.

`IncrementalDecoder` computes what the blocks of a model compute, on weights that are laid out for a few rows
at a time, because reading the matrices takes most of the time then. Greedy decoding is 1.16 times as fast as
on the weights as they are, beam search 1.2 to 1.3 times, and calling the blocks themselves takes 1.3 to 1.6
times as long (d_model 256, 6 layers, one CPU core).

Shape letters: R rows, T new tokens of each, N sources, S source tokens, D model width, H heads, G heads of
keys and values, K head width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.attention import MultiHeadAttention, fused_attention, share_heads
from tinytx.config import TransformerConfig
from tinytx.encoder_decoder import DecoderBlock, Translator
from tinytx.masks import causal_mask
from tinytx.positions import AlibiPositions, RotaryPositions
from tinytx.transformer import FeedForward, LanguageModel, Transformer


class KeyValues:
    """Keys and values of one self-attention, up to `max_len` tokens a row, in memory allocated once."""

    def __init__(self, max_len: int) -> None:
        self.max_len = max_len
        self.length = 0
        self._stored: Tensor | None = None  # (2, R, G, max_len, K): keys, values

    def append(self, new: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values of each row's next tokens, (2, R, G, any number, K).

        Returns all keys and all values, (R, G, T, K) each.
        """
        start, self.length = self.length, self.length + new.shape[3]
        if self.length > self.max_len:
            raise ValueError(f"a row must hold at most max_len={self.max_len} tokens, got {self.length}")
        if self._stored is None:
            self._stored = self._empty(new, new.shape[1])
        self._stored[:, :, :, start : self.length] = new
        keys, values = self._stored[:, :, :, : self.length]
        return keys, values

    def select(self, rows: Tensor, start: int = 0) -> None:
        """Continue with these rows, (R',), in this order; a row may occur several times.

        Where R' = R, `start` is the first token at which any row differs from the one that it replaces: what
        is equal is not copied.
        """
        if self._stored is None:
            return
        if len(rows) == self._stored.shape[1]:
            (moved,) = torch.nonzero(rows != torch.arange(len(rows), device=rows.device), as_tuple=True)
            recent = self._stored[:, :, :, start : self.length]  # (2, R, G, T - start, K)
            recent[:, moved] = recent[:, rows[moved]]
        else:
            stored = self._empty(self._stored, len(rows))
            stored[:, :, :, : self.length] = self._stored[:, rows, :, : self.length]
            self._stored = stored

    def _empty(self, like: Tensor, n_rows: int) -> Tensor:
        return like.new_empty(2, n_rows, like.shape[2], self.max_len, like.shape[4])


def is_as_built(model: nn.Module) -> bool:
    """Whether a model computes what its configuration says, so that it may be computed in another way.

    False for a model of another class than `LanguageModel` and `Translator`, and where a module was added,
    left out or replaced, has a hook or a ``forward`` of its own, or records its attention. Weights may be
    any.
    """
    kind: Any = type(model)  # mypy takes no class of modules for hashable
    if kind not in (LanguageModel, Translator):
        return False
    modules = dict(model.named_modules())
    if {name: type(each) for name, each in modules.items()} != _types(kind, model.config):
        return False
    return not any(
        each._forward_hooks
        or each._forward_pre_hooks
        or "forward" in vars(each)
        or getattr(each, "_record", None)
        for each in modules.values()
    )


@lru_cache(maxsize=16)
def _types(kind: type[LanguageModel | Translator], config: TransformerConfig) -> dict[str, type[nn.Module]]:
    with torch.device("meta"):
        return {name: type(each) for name, each in kind(config).named_modules()}


class IncrementalDecoder:
    """Scores what may follow rows that grow, and stores what later tokens need of earlier ones.

    Parameters
    ----------
    body : Transformer or TransformerDecoder
        A causal one, as built (`is_as_built`): weights are copied and laid out anew, and modules that replace
        others would not be called. No gradient flows. It has to be in evaluation mode: what is read of a
        model that trains has dropout.
    head : torch.nn.Linear
        From D to V.
    n_rows : int
        R, how many rows there will be; other numbers give the same result, but not as fast.
    max_len : int
        Most tokens a row; no more than the configuration allows.
    memory : Tensor of shape (N, S, D), optional
        What a decoder attends to. Each source belongs to R / N rows next to each other: its beams.
    memory_padding_mask : Tensor of shape (N, S), bool, optional
        True = a real source token.
    """

    def __init__(
        self,
        body: Transformer,
        head: nn.Linear,
        *,
        n_rows: int,
        max_len: int,
        memory: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
    ) -> None:
        self._body, self._head = body, few_rows([head], n_rows)
        self._memory = None if memory is None else _Memory(memory, memory_padding_mask, n_rows)
        room = min(max_len, body.config.max_len)
        blocks: Any = body.blocks  # mypy takes them for any modules
        self._attentions = [_SelfAttention(block.attn, n_rows, room) for block in blocks]
        self._blocks = [
            self._parts(block, attn, n_rows) for block, attn in zip(blocks, self._attentions, strict=True)
        ]

    def _parts(self, block: Any, attn: _SelfAttention, n_rows: int) -> list[tuple[nn.Module, _Part]]:
        """The sublayers of a block, each with its norm."""
        parts: list[tuple[nn.Module, _Part]] = [(block.attn_norm, attn)]
        if isinstance(block, DecoderBlock):
            if self._memory is None:
                raise ValueError("memory must be given for a decoder, got None")
            parts.append((block.cross_norm, _CrossAttention(block.cross_attn, n_rows, self._memory)))
        return [*parts, (block.ff_norm, _feed_forward(block.ff, n_rows))]

    @property
    def length(self) -> int:
        """Tokens that each row holds."""
        return self._attentions[0].cache.length

    @torch.no_grad()
    def read(self, token_ids: Tensor) -> Tensor:
        """Read the next tokens of each row, (R, T); score what may follow the last of them, (R, V).

        T may be larger than 1 at the beginning only.
        """
        n_rows = len(token_ids)
        x = self._body.embed(token_ids, self.length).flatten(0, 1)  # (R, T, D) -> (R T, D)
        for parts in self._blocks:
            for norm, part in parts:
                if self._body.config.norm == "first":
                    x = x + part(norm(x), n_rows)
                else:
                    x = norm(x + part(x, n_rows))
        last = x.view(n_rows, -1, x.shape[1])[:, -1]  # (R, D)
        return self._head(self._body.final_norm(last))

    def select(self, rows: Tensor, start: int = 0) -> None:
        """Continue with these rows, as `KeyValues.select` does.

        In a decoder the rows of one source are next to each other, as many as before.
        """
        for attn in self._attentions:
            attn.cache.select(rows, start)
        if self._memory is not None:
            self._memory.select(rows)


_Part = Callable[[Tensor, int], Tensor]  # from (R T, D), and R, to (R T, D)


def _feed_forward(ff: nn.Module, n_rows: int) -> _Part:
    if not isinstance(ff, FeedForward):  # experts, each of which reads few of the rows
        return lambda x, n_rows: ff(x)
    down, activation = few_rows([ff.down_proj], n_rows), ff.activation
    if ff.gate_proj is None:
        up = few_rows([ff.up_proj], n_rows)
        return lambda x, n_rows: down(activation(up(x)))
    both = few_rows([ff.gate_proj, ff.up_proj], n_rows)

    def gated(x: Tensor, n_rows: int) -> Tensor:
        gate, inner = both(x).chunk(2, dim=-1)  # (R T, F) each
        return down(activation(gate) * inner)

    return gated


class _SelfAttention:
    def __init__(self, attn: MultiHeadAttention, n_rows: int, max_len: int) -> None:
        self._qkv = few_rows([attn.q_proj, attn.k_proj, attn.v_proj], n_rows)
        self._out = few_rows([attn.out_proj], n_rows)
        self._n_heads, self._n_kv_heads, self._positions = attn.n_heads, attn.n_kv_heads, attn.positions
        self.cache = KeyValues(max_len)

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        n_heads, n_kv_heads = self._n_heads, self._n_kv_heads
        qkv = self._qkv(x).view(n_rows, -1, n_heads + 2 * n_kv_heads, x.shape[1] // n_heads)
        qkv = qkv.transpose(1, 2)  # (R, H + 2 G, T, K)
        if isinstance(self._positions, RotaryPositions):  # keys are stored as they are compared
            qk = qkv[:, : n_heads + n_kv_heads]
            qk.copy_(self._positions.rotate(qk, self.cache.length))
        q, new = qkv[:, :n_heads], qkv[:, n_heads:].unflatten(1, (2, n_kv_heads))
        k, v = self.cache.append(new.transpose(0, 1))  # (R, G, T, K)
        bias = self._positions(q, k)[2] if isinstance(self._positions, AlibiPositions) else None
        if q.shape[2] > 1:
            k, v = share_heads(k, n_heads), share_heads(v, n_heads)
            context = fused_attention(q, k, v, causal_mask(q.shape[2], device=q.device), bias)
        else:  # the queries of one group read its keys together
            bias = None if bias is None else bias.view(n_kv_heads, -1, bias.shape[2])  # (G, H / G, T)
            context = fused_attention(q.reshape(n_rows, n_kv_heads, -1, q.shape[3]), k, v, None, bias)
        return self._out(context.reshape(q.shape).transpose(1, 2).reshape(x.shape))


class _Memory:
    """The sources of a decoder, and the keys and values that each layer computes from them, once."""

    def __init__(self, memory: Tensor, padding_mask: Tensor | None, n_rows: int) -> None:
        self.hidden, self.rows_per_source = memory, n_rows // len(memory)
        self.layers: list[Tensor] = []  # keys and values, (2, N, G, S, K)
        self.bias, self._blind = None, None
        if padding_mask is not None and not padding_mask.all():
            self._blind = ~padding_mask.any(dim=1)  # (N,): sources without a real token
            blocked = ~(padding_mask | self._blind[:, None])[:, None, None]  # (N, 1, 1, S)
            self.bias = memory.new_zeros(blocked.shape).masked_fill_(blocked, -torch.inf)

    def add_layer(self, attn: MultiHeadAttention) -> int:
        """Store the keys and values of one more layer; return its number."""
        stored = torch.stack(attn.keys_values(self.hidden))  # (2, N, G, S, K)
        if self._blind is not None:
            stored[1, self._blind] = 0.0
        self.layers.append(stored)
        return len(self.layers) - 1

    def select(self, rows: Tensor) -> None:
        """Leave out sources to which none of these rows belongs."""
        sources = rows[:: self.rows_per_source] // self.rows_per_source
        if len(sources) < self.layers[0].shape[1]:
            self.layers = [stored[:, sources] for stored in self.layers]
            self.bias = None if self.bias is None else self.bias[sources]


class _CrossAttention:
    def __init__(self, attn: MultiHeadAttention, n_rows: int, memory: _Memory) -> None:
        self._q, self._out = few_rows([attn.q_proj], n_rows), few_rows([attn.out_proj], n_rows)
        self._n_heads, self._memory, self._layer = attn.n_heads, memory, memory.add_layer(attn)

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        keys, values = self._memory.layers[self._layer]  # (N, G, S, K)
        # The rows of one source are queries of the same keys, which are stored only once; so are those of the
        # heads of one group.
        q = self._q(x).view(len(keys), -1, self._n_heads, keys.shape[-1]).transpose(1, 2)
        context = fused_attention(
            q.reshape(*keys.shape[:2], -1, q.shape[3]), keys, values, None, self._memory.bias
        )
        return self._out(context.reshape(q.shape).transpose(1, 2).reshape(x.shape))


def few_rows(layers: list[nn.Linear], n_rows: int) -> Callable[[Tensor], Tensor]:
    """Copy linear layers that read the same rows, all with a bias or none, as one product for so many rows.

    torch stores a matrix as (O, I). One row is multiplied fastest where the longer side is contiguous in
    memory. For several rows oneDNN reorders the matrix at each call, which takes as long as the product of a
    few rows; here it does so once, by the operators that `torch.compile` uses for frozen weights.
    """
    with torch.no_grad():
        weight = torch.cat([layer.weight for layer in layers])  # (O, I)
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])  # (O,)
        if weight.device.type == "cpu":
            if n_rows > 1 and weight.dtype == torch.float32 and _ONEDNN:
                packed = torch.ops.mkldnn._reorder_linear_weight(weight, max(n_rows, 8))
                return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
            if n_rows == 1 and weight.shape[0] > weight.shape[1]:
                return partial(_transposed, weight.t().contiguous(), bias)
    return partial(F.linear, weight=weight, bias=bias)


_ONEDNN = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)


def _transposed(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    return x @ weight if bias is None else torch.addmm(bias, x, weight)
