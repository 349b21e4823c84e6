"""The KV cache: what attention stores while a model writes, so that one more token costs one token's work.

Attention is handed a cache and appends the keys and values of the tokens that it reads; the queries of new
tokens then attend to all that is stored. The modules and their `forward` are those that train.

Shape letters: R rows, G heads of keys and values, T tokens, K head width.
"""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValues:
    """Keys and values of one attention module, in memory allocated once.

    A row has at most `max_len` tokens; by default those that are appended first, as of a memory, which does
    not grow.
    """

    def __init__(self, max_len: int | None = None) -> None:
        self.max_len = max_len
        self.length = 0  # tokens that each row holds
        self._stored: Tensor | None = None  # (2, R, G, max_len, K): keys, values

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values of each row's next tokens, (R, G, any number, K); give all, (R, G, T, K)."""
        start, end = self.length, self.length + k.shape[2]
        self.max_len = end if self.max_len is None else self.max_len
        if end > self.max_len:
            raise ValueError(f"a row must hold at most max_len={self.max_len} tokens, got {end}")
        if torch.is_grad_enabled() and (k.requires_grad or v.requires_grad):
            raise ValueError(
                "a cache must be filled without gradients, as in torch.no_grad(), got keys with them"
            )
        if self._stored is None:
            self._stored = k.new_empty(2, *k.shape[:2], self.max_len, k.shape[3])
        if k.shape[:2] != (size := self._stored.shape[1:3]):
            rule = f"keys must have the rows and heads of the cache, {tuple(size)}"
            raise ValueError(f"{rule}, got {tuple(k.shape[:2])}")
        self._stored[0, :, :, start:end] = k
        self._stored[1, :, :, start:end] = v
        self.length = end
        return self.all()

    def all(self) -> tuple[Tensor, Tensor]:
        """All keys and all values, (R, G, T, K) each."""
        if self._stored is None:
            raise ValueError("a cache must hold tokens to be read, got an empty one")
        keys, values = self._stored[:, :, :, : self.length]
        return keys, values

    @property
    def n_rows(self) -> int:
        """R; 0 before anything is stored."""
        return 0 if self._stored is None else self._stored.shape[1]

    def select(self, rows: Tensor) -> None:
        """Continue with these rows, (R',), in this order; a row may occur several times."""
        if self._stored is not None:
            size = list(self._stored.shape)
            stored = self._stored.new_empty(2, len(rows), *size[2:])
            stored[:, :, :, : self.length] = self._stored[:, rows, :, : self.length]
            self._stored = stored

    def replace(self, rows: Tensor, others: Tensor, start: int) -> None:
        """Let some rows hold what others hold, from the token `start` on."""
        if self._stored is not None:
            recent = self._stored[:, :, :, start : self.length]  # (2, R, G, T - start, K)
            recent[:, rows] = recent[:, others]


class Cache:
    """The keys and values of every block of a model, for rows that grow by the same number of tokens.

    A row has at most `max_len` tokens.

    Examples
    --------
    A model reads one token at a time what it would read at once:

    >>> from tinytx.config import PRESETS
    >>> from tinytx.transformer import LanguageModel
    >>> model, ids = LanguageModel(PRESETS["tiny"]).eval(), torch.tensor([[5, 8, 2]])
    >>> cache = Cache(model.config.n_layers, max_len=3)
    >>> with torch.no_grad():
    ...     steps = [model(ids[:, t : t + 1], cache=cache) for t in range(3)]
    ...     torch.testing.assert_close(torch.cat(steps, dim=1), model(ids))
    """

    def __init__(self, n_layers: int, max_len: int) -> None:
        self.own = [KeyValues(max_len) for _ in range(n_layers)]  # of self-attention
        self.memory = [KeyValues() for _ in range(n_layers)]  # of cross-attention, where there is any

    @property
    def length(self) -> int:
        """Tokens that each row holds."""
        return self.own[0].length

    def select(self, rows: Tensor, start: int = 0) -> None:
        """Continue with these rows, as `KeyValues.select` does.

        As many rows as before have to belong to the same sources as before, in the same order. Of them,
        `start` is the first token at which any row differs from the one that it replaces: what is equal is
        not copied.
        """
        if len(rows) != self.own[0].n_rows:
            for each in (*self.own, *self.memory):
                each.select(rows)
            return
        (moved,) = torch.nonzero(rows != torch.arange(len(rows), device=rows.device), as_tuple=True)
        if len(moved):
            device = self.own[0].all()[0].device
            replaced, others = moved.to(device), rows[moved].to(device)
            for own in self.own:
                own.replace(replaced, others, start)
