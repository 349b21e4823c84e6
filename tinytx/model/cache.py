"""Keys and values that are kept from token to token, so that one more token costs one token's work.

Shape letters: R rows, H heads, T tokens so far, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
