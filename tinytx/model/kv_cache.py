"""Reading token by token: one more token of each row costs one token's work.

For one row that is to read all weights once, and to call torch as seldom as can be.

Shape letters: R rows, T new tokens of each, N sources, S source tokens, D model width, H heads, K head width,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.model.attention import MultiHeadAttention, fused_attention
from tinytx.model.config import TransformerConfig
from tinytx.model.counting import Head, build_empty
from tinytx.model.encoder_decoder import DecoderBlock, Translator
from tinytx.model.fast import few_rows
from tinytx.model.masks import causal_mask
from tinytx.model.positions import AlibiPositions, RotaryPositions
from tinytx.model.transformer import FeedForward, LanguageModel, Transformer


def is_as_built(model: nn.Module) -> bool:
    """Say whether a model computes what its configuration says, so that it may be computed in another way.

    Parameters
    ----------
    model : LanguageModel or Translator
        Any other model is not.

    Returns
    -------
    bool
        False if a module was added, left out or put in place of another, has a hook, or a ``forward`` of its
        own. Weights may be any.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> model = LanguageModel(PRESETS["tiny"])
    >>> is_as_built(model)
    True
    >>> model.body.blocks[0].ff_norm = nn.Identity()
    >>> is_as_built(model)
    False
    """
    if type(model) not in (LanguageModel, Translator):
        return False
    modules = dict(model.named_modules())
    head: Head = "lm" if type(model) is LanguageModel else "translation"
    if {name: type(each) for name, each in modules.items()} != _types(head, model.config):
        return False
    return not any(
        each._forward_hooks or each._forward_pre_hooks or "forward" in vars(each) for each in modules.values()
    )


@lru_cache(maxsize=16)
def _types(head: Head, config: TransformerConfig) -> dict[str, type[nn.Module]]:
    return {name: type(each) for name, each in build_empty(config, head).named_modules()}


class KeyValues:
    """Keys and values of one self-attention, in room that is taken once.

    Parameters
    ----------
    max_len : int
        Most tokens a row.
    """

    def __init__(self, max_len: int) -> None:
        self.max_len = max_len
        self.length = 0
        self._room: Tensor | None = None  # (2, R, H, max_len, K): keys, values

    def append(self, new: Tensor) -> tuple[Tensor, Tensor]:
        """Keep keys and values of more tokens.

        Parameters
        ----------
        new : Tensor of shape (2, R, H, any number, K)
            Keys and values of each row's next tokens.

        Returns
        -------
        tuple of two Tensors of shape (R, H, T, K)
            All keys and all values.

        Raises
        ------
        ValueError
            If there is no room for so many.
        """
        start, self.length = self.length, self.length + new.shape[3]
        if self.length > self.max_len:
            raise ValueError(f"a row must hold at most max_len={self.max_len} tokens, got {self.length}")
        if self._room is None:
            self._room = self._take_room(new, new.shape[1])
        self._room[:, :, :, start : self.length] = new
        keys, values = self._room[:, :, :, : self.length]
        return keys, values

    def select(self, rows: Tensor, start: int = 0) -> None:
        """Go on with these rows, in this order; a row may occur several times.

        Parameters
        ----------
        rows : Tensor of shape (R',), integer
        start : int
            Where as many rows go on as before: the first token at which any of them differs from the row
            that stood in its place. What is equal is not copied.
        """
        if self._room is None:
            return
        if len(rows) == self._room.shape[1]:
            (moved,) = torch.nonzero(rows != torch.arange(len(rows), device=rows.device), as_tuple=True)
            lately = self._room[:, :, :, start : self.length]  # (2, R, H, T - start, K)
            lately[:, moved] = lately[:, rows[moved]]
        else:
            room = self._take_room(self._room, len(rows))
            room[:, :, :, : self.length] = self._room[:, rows, :, : self.length]
            self._room = room

    def _take_room(self, like: Tensor, n_rows: int) -> Tensor:
        return like.new_empty(2, n_rows, like.shape[2], self.max_len, like.shape[4])


class Stepper:
    """Scores what may come next after rows that grow, and keeps what later tokens need of earlier ones.

    Parameters
    ----------
    body : Transformer or TransformerDecoder
        A causal one, built as its configuration says (`tinytx.model.kv_cache.is_as_built`): weights are
        copied and laid out anew, and modules that were put in place of others would not be seen.
    head : torch.nn.Linear
        From D to V.
    n_rows : int
        R, how many rows there will be; other numbers give the same, but not as quickly.
    max_len : int
        Most tokens a row; no more than the configuration allows.
    sources : Sources, optional
        What a decoder looks at.

    Notes
    -----
    Nothing is dropped out, and no gradient flows.
    """

    def __init__(
        self,
        body: Transformer,
        head: nn.Linear,
        *,
        n_rows: int,
        max_len: int,
        sources: Sources | None = None,
    ) -> None:
        self._body = body
        self._head = few_rows([head], n_rows)
        self._sources = sources
        room = min(max_len, body.config.max_len)
        self._own: list[_SelfAttention] = []
        self._blocks = [self._laid_out(block, n_rows, room) for block in body.blocks]

    def _laid_out(self, block: Any, n_rows: int, room: int) -> _Block:
        self._own.append(_SelfAttention(block.attn, n_rows, room))
        parts: list[tuple[nn.Module, _Part]] = [(block.attn_norm, self._own[-1])]
        if isinstance(block, DecoderBlock):
            if self._sources is None:
                raise ValueError("sources must be given for a decoder, got none")
            parts.append((block.cross_norm, _CrossAttention(block.cross_attn, n_rows, self._sources)))
        parts.append((block.ff_norm, _FeedForward(block.ff, n_rows)))
        return _Block(parts, block.norm_first)

    @property
    def length(self) -> int:
        """Tokens that each row holds."""
        return self._own[0].kept.length

    @torch.no_grad()
    def read(self, token_ids: Tensor) -> Tensor:
        """Read more tokens of each row.

        Parameters
        ----------
        token_ids : Tensor of shape (R, T), integer
            Those that follow what was read before; several of them only at the beginning.

        Returns
        -------
        Tensor of shape (R, V)
            Scores of what may follow the last of them.
        """
        n_rows = len(token_ids)
        x = self._body.embed(token_ids, self.length).flatten(0, 1)  # (R, T, D) -> (R T, D)
        for block in self._blocks:
            x = block(x, n_rows)
        last = x.view(n_rows, -1, x.shape[1])[:, -1]  # (R, D)
        return self._head(self._body.final_norm(last))

    def select(self, rows: Tensor, start: int = 0) -> None:
        """Go on with these rows, in this order; a row may occur several times.

        Parameters
        ----------
        rows : Tensor of shape (R',), integer
            In a decoder those of one source stand together, as many as before, and belong together before.
        start : int
            As in `KeyValues.select`.
        """
        for each in self._own:
            each.kept.select(rows, start)
        if self._sources is not None:
            self._sources.select(rows)


@dataclass(eq=False)
class Sources:
    """What the rows of a decoder look at: the same source for the K rows that write about it.

    Parameters
    ----------
    memory : Tensor of shape (N, S, D)
        What the encoder returns.
    real : Tensor of shape (N, S), bool
        True = a real source token.
    rows_per_source : int
        How many rows are written about each source: beams, say.
    """

    memory: Tensor
    real: Tensor
    rows_per_source: int = 1

    def __post_init__(self) -> None:
        blind = ~self.real.any(dim=1)  # (N,): sources of which nothing may be seen
        self.blind = blind if blind.any() else None
        shown = self.real | blind[:, None]
        zero = self.memory.new_zeros(())
        # Added to the scores; left out where every token is real.
        self.bias = None if shown.all() else zero.where(shown, -torch.inf)[:, None, None]  # (N, 1, 1, S)
        self.kept: list[Tensor] = []  # keys and values of each layer, (2, N, H, S, K)

    def add_layer(self, attn: MultiHeadAttention) -> int:
        """Keep the keys and values that a layer makes of the sources; return its number."""
        kept = torch.stack(attn.keys_values(self.memory))  # (2, N, H, S, K)
        if self.blind is not None:
            kept[1, self.blind] = 0.0  # a token that sees nothing gathers nothing
        self.kept.append(kept)
        return len(self.kept) - 1

    def select(self, rows: Tensor) -> None:
        """Leave out sources about which none of these rows write."""
        sources = rows[:: self.rows_per_source] // self.rows_per_source
        if len(sources) < self.kept[0].shape[1]:
            self.kept = [kept[:, sources] for kept in self.kept]
            self.bias = None if self.bias is None else self.bias[sources]


_Part = Callable[[Tensor, int], Tensor]  # from (R T, D), and R, to (R T, D)


@dataclass(frozen=True, eq=False)
class _Block:
    """Parts of a block, each with the norm before or after it."""

    parts: list[tuple[nn.Module, _Part]]
    norm_first: bool

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        for norm, part in self.parts:
            x = x + part(norm(x), n_rows) if self.norm_first else norm(x + part(x, n_rows))
        return x


class _FeedForward:
    def __init__(self, ff: FeedForward, n_rows: int) -> None:
        self._up, self._down = few_rows([ff.up_proj], n_rows), few_rows([ff.down_proj], n_rows)
        self._activation = ff.activation

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        return self._down(self._activation(self._up(x)))


class _CrossAttention:
    def __init__(self, attn: MultiHeadAttention, n_rows: int, sources: Sources) -> None:
        self._q, self._out = few_rows([attn.q_proj], n_rows), few_rows([attn.out_proj], n_rows)
        self._n_heads, self._sources, self._layer = attn.n_heads, sources, sources.add_layer(attn)

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        keys, values = self._sources.kept[self._layer]  # (N, H, S, K)
        # Rows of one source stand side by side as its queries, so that its keys are kept but once.
        q = self._q(x).view(len(keys), -1, self._n_heads, keys.shape[-1]).transpose(1, 2)
        context = fused_attention(q, keys, values, None, self._sources.bias)
        return self._out(context.transpose(1, 2).reshape(x.shape))


class _SelfAttention:
    def __init__(self, attn: MultiHeadAttention, n_rows: int, room: int) -> None:
        self._qkv = few_rows([attn.q_proj, attn.k_proj, attn.v_proj], n_rows)
        self._out = few_rows([attn.out_proj], n_rows)
        self._n_heads, self._positions = attn.n_heads, attn.positions
        self.kept = KeyValues(room)

    def __call__(self, x: Tensor, n_rows: int) -> Tensor:
        qkv = self._qkv(x).view(n_rows, -1, 3, self._n_heads, x.shape[1] // self._n_heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, R, H, T, K)
        if isinstance(self._positions, RotaryPositions):  # a key is turned once, and kept as it is compared
            qkv[:2] = self._positions.turn(qkv[:2], self.kept.length)
        q = qkv[0]
        k, v = self.kept.append(qkv[1:])
        bias = self._positions(q, k)[2] if isinstance(self._positions, AlibiPositions) else None
        mask = causal_mask(q.shape[2], device=q.device) if q.shape[2] > 1 else None
        context = fused_attention(q, k, v, mask, bias)  # (R, H, T, K)
        return self._out(context.transpose(1, 2).reshape(x.shape))
