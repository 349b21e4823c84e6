"""Reading token by token: one more token of each row costs one token's work.

For one row that is to read all weights once, and to call torch as seldom as can be.

Shape letters: R rows, T new tokens of each, N sources, S source tokens, D model width, H heads, K head width,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.model.alibi import AlibiPositions
from tinytx.model.attention import fused_attention
from tinytx.model.blocks import FeedForward
from tinytx.model.body import TransformerBody
from tinytx.model.cache import KeyValues
from tinytx.model.decoder import DecoderBlock
from tinytx.model.fewrows import few_rows
from tinytx.model.multihead import MultiHeadAttention
from tinytx.model.rotary import RotaryPositions


class Stepper:
    """Scores what may come next after rows that grow, and keeps what later tokens need of earlier ones.

    Parameters
    ----------
    body : TransformerBody or TransformerDecoder
        A causal one, built as its configuration says (`tinytx.model.asbuilt.is_as_built`): weights are
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
        body: TransformerBody,
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
        context = fused_attention(q, k, v, None, bias, is_causal=q.shape[2] > 1)  # (R, H, T, K)
        return self._out(context.transpose(1, 2).reshape(x.shape))
