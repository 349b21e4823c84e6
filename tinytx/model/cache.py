"""Keys and values that are kept from step to step, so that writing one more token costs one token's work.

Shape letters: R rows, N sources, K rows a source (R = N K), H heads, T tokens so far, S source tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class KeyValues:
    """Keys and values of one self-attention, in room that is taken once.

    Parameters
    ----------
    n_rows : int
        R.
    n_heads, head_dim : int
    max_len : int
        Most tokens a row.
    like : Tensor
        Gives dtype and device.
    """

    def __init__(self, n_rows: int, n_heads: int, head_dim: int, max_len: int, like: Tensor) -> None:
        self._room = like.new_empty(2, n_rows, n_heads, max_len, head_dim)
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keep keys and values of one more token, (R, H, 1, head_dim); return all, (R, H, T, head_dim)."""
        if self.length == self._room.shape[3]:
            raise ValueError(f"a row must hold at most max_len={self.length} tokens, got one more")
        self._room[0, :, :, self.length : self.length + 1] = k
        self._room[1, :, :, self.length : self.length + 1] = v
        self.length += 1
        keys, values = self._room[:, :, :, : self.length]
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may occur several times."""
        if len(rows) == self._room.shape[1]:
            self._room[:, :, :, : self.length] = self._room[:, rows, :, : self.length]
        else:
            self._room = self._room[:, rows]


@dataclass(eq=False)
class DecoderCache:
    """What a decoder keeps while it writes: its own keys and values, and those of the source.

    Attributes
    ----------
    own : list of KeyValues
        One a layer.
    source : list of pairs of Tensor, each (N, H, S, head_dim)
        Keys and values of the source, one pair a layer; the K rows of a source share them.
    mask : Tensor of shape (N, 1, 1, S), bool
        True = a real source token.
    rows_per_source : int
        K.
    """

    own: list[KeyValues]
    source: list[tuple[Tensor, Tensor]]
    mask: Tensor
    rows_per_source: int

    @property
    def length(self) -> int:
        """Tokens written so far."""
        return self.own[0].length

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order.

        Parameters
        ----------
        rows : Tensor of shape (R',)
            Numbers of rows; those of one source stand together, K at a time, and belong together before.
        """
        if torch.equal(rows, torch.arange(len(self.mask) * self.rows_per_source, device=rows.device)):
            return
        for kept in self.own:
            kept.select(rows)
        sources = rows[:: self.rows_per_source] // self.rows_per_source
        if len(sources) < len(self.mask):
            self.source = [(k[sources], v[sources]) for k, v in self.source]
            self.mask = self.mask[sources]
